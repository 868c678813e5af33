"""What a source's node knows of its live source: how it is, and which frames never came.

All of it goes into the ledger, where the summary, the progress and who asks from outside read it.
"""

from __future__ import annotations

from edgert.stages.live import STATES, Condition, Feed
from edgert.tensor import FrameHeader
from edgert.transport.gate import FlowGate
from edgert.transport.ledger import StreamBlock


class FeedWatch:
    """Watches one live source.

    Args:
        feed: The live source.
        block: Its stream's place in the ledger.
    """

    def __init__(self, feed: Feed, block: StreamBlock) -> None:
        self.feed = feed
        self._block = block
        self._known: Condition | None = None
        # What was before the worker was restarted: epochs never begin again at 0.
        self._epochs_before = int(block.words[StreamBlock.EPOCHS])
        self._reconnects_before = int(block.words[StreamBlock.RECONNECTS])

    def look(self, gate: FlowGate) -> int:
        """Note how the source is, and count the frames that never came; return those lost."""
        condition = self.feed.condition
        if condition is not self._known:
            self._known = condition
            self._note(condition)
        unseen = self.feed.take_unseen()
        if unseen.dropped:
            gate.drop(unseen.dropped)
        if unseen.lost:
            gate.lose(unseen.lost)
        words = self._block.words
        words[StreamBlock.SCALED] += unseen.scaled
        words[StreamBlock.DAMAGED] += unseen.damaged
        return unseen.lost

    def in_its_epoch(self, header: FrameHeader) -> FrameHeader:
        """Return a header whose epoch follows those before a restart of the worker."""
        epoch = header.epoch + self._epochs_before
        words = self._block.words
        words[StreamBlock.EPOCHS] = max(words[StreamBlock.EPOCHS], epoch + 1)
        return header._replace(epoch=epoch) if self._epochs_before else header

    def _note(self, condition: Condition) -> None:
        words = self._block.words
        words[StreamBlock.STATE] = STATES.index(condition.state)
        words[StreamBlock.RECONNECTS] = self._reconnects_before + condition.reconnects
        epochs = self._epochs_before + condition.epochs
        words[StreamBlock.EPOCHS] = max(words[StreamBlock.EPOCHS], epochs)
        self._block.set_text("reason", condition.reason)
        if condition.media:
            self._block.set_text("media", condition.media)

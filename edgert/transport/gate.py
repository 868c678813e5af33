"""The flow gate of a source: frames enter with a credit and are accounted for when they leave.

Each leaf of the graph (but those aside of it, ``plan/aside.py``) answers each frame with a DONE
token. A frame has left when all of them did;
the worst outcome counts, except that a frame which one leaf processed and another dropped (a
preview) is processed. What is in flight stands in the ledger, so that a death loses no count.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from edgert.transport.ledger import StreamBlock
from edgert.transport.queue import PipeQueue
from edgert.transport.token import DONE, DROPPED, LOST, NONE, Token

_COUNTER = {
    NONE: StreamBlock.PROCESSED,
    DROPPED: StreamBlock.DROPPED,
    LOST: StreamBlock.LOST,
}
_SEEN_PROCESSED, _SEEN_DROPPED, _SEEN_LOST = 1, 2, 4


class FlowGate:
    """Admits frames of one stream while credits last.

    Args:
        done: Where DONE tokens arrive.
        block: The stream's counters and its table of frames in flight.
        leaves: Numbers of the leaves that answer for each frame of this stream.
    """

    def __init__(self, done: PipeQueue, block: StreamBlock, leaves: Sequence[int]) -> None:
        self._done = done
        self._words = block.words
        self._block = block
        self._all_leaves = sum(1 << leaf for leaf in leaves)
        self._free = [block.entry_at(entry) for entry in reversed(range(block.entries))]
        self._entries: dict[int, int] = {}
        self.done_fd = done.read_fd
        self._adopt()

    def _adopt(self) -> None:
        # A gate that takes over (the source restarted) finds the frames still in flight.
        for at in list(self._free):
            if self._words[at]:
                self._entries[self._words[at] - 1] = at
                self._free.remove(at)

    @property
    def in_flight(self) -> int:
        """How many frames are on their way."""
        return len(self._entries)

    @property
    def has_room(self) -> bool:
        """Whether another frame may enter, by what has been accounted for."""
        return bool(self._free)

    def is_open(self) -> bool:
        """Whether another frame may enter; looks at what came back first where it must."""
        if self._free:
            return True
        self.settle()
        return bool(self._free)

    def admit(self, sequence: int) -> None:
        """Count a frame as read and let it enter; the gate must be open, or have it already."""
        if sequence in self._entries:
            return  # a restarted source reads it again
        at = self._free.pop()
        self._entries[sequence] = at
        words = self._words
        words[at + 1] = self._all_leaves
        words[at + 2] = 0
        words[at] = sequence + 1
        words[StreamBlock.READ] += 1

    def drop(self, frames: int = 1) -> None:
        """Count frames of a live source that found the gate closed, or came to it too old."""
        self._words[StreamBlock.READ] += frames
        self._words[StreamBlock.DROPPED] += frames

    def end(self) -> None:
        """Note that no frame enters any more."""
        self._words[StreamBlock.ENDED] = 1

    def lose(self, frames: int) -> None:
        """Count frames of a live source that could not be decoded."""
        self._words[StreamBlock.READ] += frames
        self._words[StreamBlock.LOST] += frames

    def settle(self) -> None:
        """Account for every DONE that has arrived, one by one: what is in hand a death loses."""
        while (token := self._done.receive_nowait()) is not None:
            self._account(token)

    def recover(self, marks: Mapping[int, int], read: int) -> list[int]:
        """Account for what a dead gate had in hand, and make its counts whole.

        Args:
            marks: Leaf -> its mark DONE of this stream (``ledger.py``).
            read: Frames that the source has surely read.

        Returns:
            The frames still in flight.
        """
        self.settle()  # after the marks were read: what they say has left
        words = self._words
        for sequence, at in list(self._entries.items()):
            for leaf, mark in marks.items():
                if words[at + 1] & (1 << leaf) and mark >> 2 > sequence:
                    # Of an answer that is not its last, what it was is not known any more.
                    outcome = mark & 3 if mark >> 2 == sequence + 1 else LOST
                    self._account((sequence, leaf, 0, DONE, outcome))
        self._make_whole(read)
        return sorted(self._entries)

    def _make_whole(self, read: int) -> None:
        """A gate killed between two of its writes has a frame in both counts, or in neither."""
        words = self._words
        for sequence, at in list(self._entries.items()):
            if not words[at + 1]:
                words[at] = 0
                self._free.append(at)
                del self._entries[sequence]
        known = self._settled() + len(self._entries)
        words[StreamBlock.READ] = max(words[StreamBlock.READ], read, known)
        words[StreamBlock.LOST] += words[StreamBlock.READ] - known

    def _settled(self) -> int:
        words = self._words
        return int(
            words[StreamBlock.PROCESSED] + words[StreamBlock.DROPPED] + words[StreamBlock.LOST]
        )

    def _account(self, token: Token) -> None:
        sequence, leaf, _, _, outcome = token
        at = self._entries.get(sequence)
        words = self._words
        if at is None or not words[at + 1] & (1 << leaf):
            return  # an answer given twice: a dead worker's, and again by who stands in for it
        words[at + 1] &= ~(1 << leaf)
        words[at + 2] |= _seen(outcome)
        if not words[at + 1]:
            words[_counter(words[at + 2])] += 1
            words[at] = 0
            del self._entries[sequence]
            self._free.append(at)


def _seen(outcome: int) -> int:
    if outcome == LOST:
        return _SEEN_LOST
    return _SEEN_DROPPED if outcome == DROPPED else _SEEN_PROCESSED


def _counter(seen: int) -> int:
    if seen & _SEEN_LOST:
        return _COUNTER[LOST]
    return _COUNTER[NONE if seen & _SEEN_PROCESSED else DROPPED]


def settle_after_death(done: PipeQueue, block: StreamBlock, leaves: Sequence[int]) -> int:
    """Close a stream's account when its source is gone: what is still in flight is lost.

    Called by the supervisor once nothing moves any more.

    Returns:
        How many frames were lost by this.
    """
    FlowGate(done, block, leaves).settle()
    words = block.words
    # By the counters, not by the table: a gate killed between two of its writes has a frame in
    # both, or in neither.
    settled = words[block.PROCESSED] + words[block.DROPPED] + words[block.LOST]
    lost = words[block.READ] - settled
    words[block.LOST] += lost
    for entry in range(block.entries):
        words[block.entry_at(entry)] = 0
    return lost

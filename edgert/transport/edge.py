"""An edge of a ring (``ring.py``): its plan, and the writer's end of it."""

from __future__ import annotations

import msgspec

from edgert.transport.ledger import (
    ENDED_MARK,
    SLOT_FREE,
    SLOT_READY,
    EdgeBlock,
)
from edgert.transport.queue import TokenQueue
from edgert.transport.token import AGAIN, DROPPED, END, FRAME, GAP, LAST, NONE


class EdgePlan(msgspec.Struct, frozen=True):
    """An edge: who reads a ring, and how it waits.

    Attributes:
        name: ``camera.image->prepare.image``.
        reader: Name of the stage that reads.
        port: Its input port.
        depth: Frames that may wait.
        drops: Whether the oldest waiting frame is taken back when full (``drop-oldest``).
        held: Frames the reader may hold at once.
        streams: Numbers of the streams that come this way.
        aside: Whether nobody behind it needs to hear of gaps (``plan/aside.py``).
        shared: The stage of whose replicas the reader is one: a frame goes to one of them alone.
        merge: The stage of whose replicas the writer is one: the reader puts their frames in order.
        rejects: Whether a frame is not sent when the edge is full (``reject``).
        max_age_ns: Age above which the reader drops a frame when its turn comes; 0 for none.
        priority: Frames the reader takes in a row while other edges of its port have some, too.
    """

    name: str
    reader: str
    port: str
    depth: int
    drops: bool
    held: int
    streams: tuple[int, ...]
    aside: bool = False
    shared: str = ""
    merge: str = ""
    rejects: bool = False
    max_age_ns: int = 0
    priority: int = 1


class EdgeWriter:
    """The writer's end of an edge.

    Attributes:
        number: Its number among the edges of the ring, which the ring gives it.
    """

    number = 0

    def __init__(self, plan: EdgePlan, ready: TokenQueue, block: EdgeBlock) -> None:
        self.block = block
        self.drops = plan.drops
        self.rejects = plan.rejects
        self.hears_gaps = not plan.aside
        self.depth = plan.depth
        self.ready = ready
        self.words = block.words
        self.states = block.states

    @property
    def edges(self) -> tuple[EdgeWriter, ...]:
        """This edge: it is the only one on its way."""
        return (self,)

    def next_edge(self) -> EdgeWriter:
        """Return this edge: it is the only one on its way."""
        return self

    def send_frame(self, slot: int, stream: int, sequence: int) -> None:
        """Hand a slot to the reader."""
        at = EdgeBlock.SENT + stream * EdgeBlock.SPAN
        if sequence < self.words[at] & ~ENDED_MARK:
            self.send_late(slot, stream, sequence, NONE)
            return
        self.states[slot] = SLOT_READY  # before the token: RingReader.receive_nowait follows it
        self.words[EdgeBlock.READ] += 1
        self.ready.send((sequence, slot, stream, FRAME, NONE))
        self.words[at] = sequence + 1

    def send_late(self, slot: int, stream: int, sequence: int, reason: int) -> None:
        """Hand a slot to the reader when later frames of its stream have been sent already.

        A reader that takes a dead one's place just now finds it by its state: hence AGAIN.

        Args:
            slot: The slot.
            stream: Of the frame in it.
            sequence: Of the frame in it.
            reason: ALONE or NONE.
        """
        self.states[slot] = SLOT_READY
        self.words[EdgeBlock.READ] += 1
        self.ready.send((sequence, slot, stream, AGAIN, reason))
        self._note_sent(stream, sequence)

    def send_gap(self, stream: int, sequence: int, reason: int) -> None:
        """Tell the reader that a frame will not come, if it has a use for that."""
        if not self.hears_gaps:
            return
        self.words[self.block.gap_at(stream, sequence)] = sequence + 1 << 2 | reason
        self.ready.send((sequence, 0, stream, GAP, reason))
        self._note_sent(stream, sequence)

    def send_last(self, stream: int) -> None:
        """The end follows at once: nobody else's frames can come this way."""

    def tell_last(self, stream: int) -> None:
        """Tell the reader that nothing comes any more, unless frames of others come to it."""
        self.ready.send((0, 0, stream, LAST, NONE))

    def send_end(self, stream: int) -> None:
        """Tell the reader that a stream has ended."""
        self.words[EdgeBlock.ENDED] += 1  # before the token: a stand-in (runtime) trusts it
        self.ready.send((0, 0, stream, END, NONE))
        self.words[EdgeBlock.SENT + stream * EdgeBlock.SPAN] |= ENDED_MARK

    def send_again(self, slot: int, stream: int, sequence: int) -> None:
        """Tell of a slot of which a dead writer may have told: the reader takes it once."""
        self.ready.send((sequence, slot, stream, AGAIN, NONE))
        self._note_sent(stream, sequence)

    def was_last(self, stream: int, sequence: int) -> bool:
        """Whether a frame is the last of its stream of which the reader was surely told."""
        return self.block.sent(stream) & ~ENDED_MARK == sequence + 1

    def _note_sent(self, stream: int, sequence: int) -> None:
        at = EdgeBlock.SENT + stream * EdgeBlock.SPAN
        self.words[at] = max(self.words[at], sequence + 1)  # of a frame taken back it comes late

    def reject(self, stream: int, sequence: int) -> None:
        """Drop a frame that finds the edge full, leaving a gap."""
        self.words[EdgeBlock.READ] += 1
        self.words[EdgeBlock.DROPPED] += 1
        self.send_gap(stream, sequence, DROPPED)

    def waiting(self) -> int:
        """Return how many frames wait (gaps do not count): a frame just taken may still be in."""
        return bytes(self.states).count(SLOT_READY)

    def take_back(self) -> int | None:
        """Take the oldest waiting frame back, leaving a gap; None where none waits.

        The reader may take it first: the kernel gives each token to one of the two.
        """
        for _ in range(self.ready.waiting()):
            token = self.ready.receive_nowait()
            if token is None:
                return None
            sequence, slot, stream, kind, _ = token
            if kind not in (FRAME, AGAIN):
                self.ready.send(token)
                continue
            self.states[slot] = SLOT_FREE
            self.words[EdgeBlock.DROPPED] += 1
            self.send_gap(stream, sequence, DROPPED)
            return slot
        return None

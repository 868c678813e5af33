"""A ring: the slots of one output port, from its one writer to the readers of its edges and back.

    writer: loan -> (fill) -> commit ----- ready pipe of each edge -----> reader: receive
      ^                                                                     |
      +-------------------------- free pipe <------------------------- release

A slot is free again when every edge has given it back; the writer counts that in its own memory.
States of slots in the ledger are written before the token is sent and after it is received, so
that after a death what is neither in a pipe nor held by a living process is known. Where a stage
runs as several workers, each has an edge of its own, and a frame takes one of them.
"""

from __future__ import annotations

import mmap
from collections.abc import Sequence
from typing import Protocol

import msgspec

from edgert.transport.address import address_of_map
from edgert.transport.ledger import SLOT_FREE, SLOT_HELD, SLOT_READY, EdgeBlock
from edgert.transport.queue import TokenQueue
from edgert.transport.slot import Loan, Sample, SlotLayout
from edgert.transport.token import DROPPED, END, FRAME, FREE, GAP, LOST, NONE, Token


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


class RingPlan(msgspec.Struct, frozen=True):
    """A ring: one output port of one writer.

    Attributes:
        name: ``camera.image``.
        slots: How many frames it has room for.
        layout: How a slot is divided.
        edges: Who reads it.
    """

    name: str
    slots: int
    layout: SlotLayout
    edges: tuple[EdgePlan, ...]

    @property
    def nbytes(self) -> int:
        """Bytes of its segment."""
        return self.slots * self.layout.slot_bytes

    @property
    def writer(self) -> str:
        """Name of the stage that writes it."""
        return self.name.rpartition(".")[0]

    @property
    def port(self) -> str:
        """Name of the output port it is."""
        return self.name.rpartition(".")[2]


class Way(Protocol):
    """Where the frames of a ring go: one edge, or edges of which each frame takes one."""

    def next_edge(self) -> EdgeWriter:
        """Return the edge that the next frame, or gap, takes."""
        ...

    def send_end(self, stream: int) -> None:
        """Tell every reader that a stream has ended."""
        ...


class EdgeWriter:
    """The writer's end of an edge."""

    def __init__(self, plan: EdgePlan, ready: TokenQueue, block: EdgeBlock) -> None:
        self.drops = plan.drops
        self.hears_gaps = not plan.aside
        self.depth = plan.depth
        self.ready = ready
        self.words = block.words
        self.states = block.states

    def next_edge(self) -> EdgeWriter:
        """Return this edge: it is the only one on its way."""
        return self

    def send_frame(self, slot: int, stream: int, sequence: int) -> None:
        """Hand a slot to the reader."""
        self.states[slot] = SLOT_READY  # before the token: RingReader.receive_nowait follows it
        self.words[EdgeBlock.READ] += 1
        self.ready.send((sequence, slot, stream, FRAME, NONE))

    def send_gap(self, stream: int, sequence: int, reason: int) -> None:
        """Tell the reader that a frame will not come, if it has a use for that."""
        if self.hears_gaps:
            self.ready.send((sequence, 0, stream, GAP, reason))

    def send_end(self, stream: int) -> None:
        """Tell the reader that a stream has ended."""
        self.words[EdgeBlock.ENDED] += 1  # before the token: a stand-in (runtime) trusts it
        self.ready.send((0, 0, stream, END, NONE))

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
            if kind != FRAME:
                self.ready.send(token)
                continue
            self.states[slot] = SLOT_FREE
            self.words[EdgeBlock.DROPPED] += 1
            self.send_gap(stream, sequence, DROPPED)
            return slot
        return None


class RingWriter:
    """The writer of a ring.

    Args:
        plan: The ring.
        memory: Its segment, mapped writable.
        free: Where slots come back.
        ways: Where its frames go; each frame goes all of them.
    """

    def __init__(
        self, plan: RingPlan, memory: mmap.mmap, free: TokenQueue, ways: Sequence[Way]
    ) -> None:
        address = address_of_map(memory)
        self.plan = plan
        self.loans = [Loan(memory, plan.layout, slot, address) for slot in range(plan.slots)]
        self.free_fd = free.read_fd
        self._free_queue = free
        self._ways = tuple(ways)
        self._holders = [0] * plan.slots
        self._free = list(reversed(range(plan.slots)))

    def loan_nowait(self) -> Loan | None:
        """Lend a free slot; None where every slot is on its way or held."""
        if not self._free:
            self._collect()
        return self.loans[self._free.pop()] if self._free else None

    def put_back(self, loan: Loan) -> None:
        """Give a loan back unsent."""
        loan.finish()
        self._free.append(loan.index)

    def commit(self, loan: Loan, stream: int, sequence: int) -> None:
        """Send a filled slot to every reader, or to one of those that share."""
        loan.finish()
        slot = loan.index
        self._holders[slot] = len(self._ways)
        for way in self._ways:
            edge = way.next_edge()
            if edge.drops:
                self._make_room(edge)
            edge.send_frame(slot, stream, sequence)

    def gap(self, stream: int, sequence: int, reason: int) -> None:
        """Tell every reader that a frame will not come."""
        for way in self._ways:
            way.next_edge().send_gap(stream, sequence, reason)

    def end(self, stream: int) -> None:
        """Tell every reader that a stream has ended."""
        for way in self._ways:
            way.send_end(stream)

    def _make_room(self, edge: EdgeWriter) -> None:
        while edge.waiting() >= edge.depth:
            slot = edge.take_back()
            if slot is None:
                return
            self._returned(slot)

    def _collect(self) -> None:
        for _, slot, _, _, _ in self._free_queue.receive_all():
            self._returned(slot)

    def _returned(self, slot: int) -> None:
        self._holders[slot] -= 1
        if not self._holders[slot]:
            self._free.append(slot)


class RingReader:
    """The reader's end of one edge of a ring.

    Args:
        plan: The edge.
        ring: Its ring.
        memory: The ring's segment, mapped read-only.
        ready: Where tokens arrive.
        free: Where slots are given back.
        block: The edge's counters and states.
    """

    def __init__(  # noqa: PLR0913  the six things an edge consists of
        self,
        plan: EdgePlan,
        ring: RingPlan,
        memory: mmap.mmap,
        ready: TokenQueue,
        free: TokenQueue,
        block: EdgeBlock,
    ) -> None:
        address = address_of_map(memory)
        self.plan = plan
        self.samples = [Sample(memory, ring.layout, slot, address) for slot in range(ring.slots)]
        self.streams = plan.streams
        self.ready_fd = ready.read_fd
        self.ready_fds: tuple[int, ...] = (ready.read_fd,)
        self._ready = ready
        self._free = free
        self._words = block.words
        self._states = block.states

    def receive_nowait(self) -> Token | None:
        """Take the next token; of a frame, its slot is held until ``release``."""
        token = self._ready.receive_nowait()
        if token is not None and token[3] == FRAME:
            self._states[token[1]] = SLOT_HELD  # after the token: EdgeWriter.send_frame precedes it
        return token

    def sample(self, slot: int) -> Sample:
        """Return the frame in a slot that is held."""
        sample = self.samples[slot]
        sample.refresh()
        return sample

    def release(self, slot: int, outcome: int) -> None:
        """Give a slot back to its writer and count what became of its frame."""
        self._states[slot] = SLOT_FREE
        self._words[EdgeBlock.LOST if outcome == LOST else EdgeBlock.PROCESSED] += 1
        self._free.send((0, slot, 0, FREE, NONE))

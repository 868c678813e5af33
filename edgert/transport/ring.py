"""A ring: the slots of one output port, from its one writer to the readers of its edges and back.

The reader's end is in ``reader.py``.

    writer: loan -> (fill) -> commit ----- ready pipe of each edge -----> reader: receive
      ^                                                                     |
      +-------------------------- free pipe <------------------------- release

A slot is free again when every edge has given it back; the writer knows that from its own memory,
or from the ledger where it takes a dead writer's place. States of slots in the ledger are written
before the token is sent and after it is received, so that after a death what is neither in a pipe
nor held by a living process is known (``recovery.py``). Where a stage runs as several workers, each
has an edge of its own, and a frame takes one of them.
"""

from __future__ import annotations

import mmap
from collections.abc import Sequence
from typing import Protocol

import msgspec

from edgert.transport.address import address_of_map
from edgert.transport.edge import EdgePlan, EdgeWriter
from edgert.transport.ledger import (
    ENDED_MARK,
    SLOT_BACK,
    SLOT_FREE,
    SLOT_READY,
    SLOT_SUSPECT,
    SLOT_UNDONE,
    EdgeBlock,
)
from edgert.transport.queue import TokenQueue
from edgert.transport.slot import Loan, SlotLayout, frame_of
from edgert.transport.token import ALONE, LOST, NONE

_BACK = frozenset({SLOT_BACK, SLOT_SUSPECT})


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

    @property
    def edges(self) -> tuple[EdgeWriter, ...]:
        """The edges, in the plan's order."""
        ...

    def next_edge(self) -> EdgeWriter:
        """Return the edge that the next frame, or gap, takes."""
        ...

    def send_last(self, stream: int) -> None:
        """Tell readers that may yet be given frames of others that there are no more beside."""
        ...

    def send_end(self, stream: int) -> None:
        """Tell every reader that a stream has ended."""
        ...


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
        self._edges = tuple(edge for way in ways for edge in way.edges)
        for number, edge in enumerate(self._edges):
            edge.number = number
        # Slot -> a bit for each edge that has not given it back, and the frame that is in it.
        self._holders = [self._held_by(slot) for slot in range(plan.slots)]
        self._frames = [frame_of(memory, plan.layout, slot) for slot in range(plan.slots)]
        self._free = [slot for slot in reversed(range(plan.slots)) if not self._holders[slot]]
        self._uncleared = {slot for slot in range(plan.slots) if self._holders[slot]}
        self._ends: list[tuple[Way, int]] = []  # that are not told yet
        for slot in self._free:
            self.loans[slot].clear()

    def _held_by(self, slot: int) -> int:
        return sum(1 << edge.number for edge in self._edges if edge.states[slot] != SLOT_FREE)

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
        self._frames[slot] = (stream, sequence)
        for way in self._ways:
            edge = way.next_edge()
            if edge.rejects and edge.waiting() >= edge.depth:
                edge.reject(stream, sequence)
                continue
            if edge.drops:
                self._make_room(edge)
            self._holders[slot] |= 1 << edge.number
            edge.send_frame(slot, stream, sequence)
        if not self._holders[slot]:
            self._free.append(slot)  # nobody took it

    def commit_again(self, stream: int, sequence: int) -> None:
        """Finish what a dead writer began; what a reader has heard already, it hears in vain."""
        frame = (stream, sequence)
        slots = [slot for slot, other in enumerate(self._frames) if other == frame]
        for way in self._ways:
            waiting = [(e, s) for e in way.edges for s in slots if e.states[s] == SLOT_READY]
            for edge, slot in waiting:
                edge.send_again(slot, stream, sequence)
            came_back = any(e.states[s] in _BACK for e in way.edges for s in slots)
            was_told = came_back or any(e.was_last(stream, sequence) for e in way.edges)
            if not waiting and not was_told:
                way.next_edge().send_gap(stream, sequence, LOST)

    def has_ended(self, stream: int) -> bool:
        """Whether any reader was told that a stream has ended."""
        return any(edge.block.sent(stream) & ENDED_MARK for edge in self._edges)

    def gap(self, stream: int, sequence: int, reason: int) -> None:
        """Tell every reader that a frame will not come."""
        for way in self._ways:
            way.next_edge().send_gap(stream, sequence, reason)

    def end(self, stream: int) -> None:
        """Tell every reader that a stream has ended, workers of one stage when all are done."""
        for way in self._ways:
            self._ends.append((way, stream))
            way.send_last(stream)
        self.send_ends()

    @property
    def has_untold_ends(self) -> bool:
        """Whether a reader has to be told of an end yet."""
        return bool(self._ends)

    def send_ends(self) -> bool:
        """Tell those that a stream has ended whom no frame can reach any more; whether all know.

        Until a frame is done it may have to go to another worker, which must still be there.
        """
        if not self._ends:
            return True
        self._collect()
        untold = [each for each in self._ends if not self._is_all_done(*each)]
        for way, stream in self._ends:
            if (way, stream) not in untold:
                way.send_end(stream)
        self._ends = untold
        return not untold

    def _is_all_done(self, way: Way, stream: int) -> bool:
        return len(way.edges) == 1 or not any(
            edge.states[slot] in SLOT_UNDONE
            for slot, (of, _) in enumerate(self._frames)
            if of == stream
            for edge in way.edges
        )

    def deal_again(self) -> None:
        """Give frames that a worker of a stage has left undone to another one."""
        for way in self._ways:
            for edge in way.edges if len(way.edges) > 1 else ():
                for slot, state in enumerate(bytes(edge.states)):
                    if state in _BACK:
                        self._deal_again(way, edge, slot, ALONE if state == SLOT_SUSPECT else NONE)

    def _deal_again(self, way: Way, edge: EdgeWriter, slot: int, reason: int) -> None:
        stream, sequence = self._frames[slot]
        holders = [other for other in way.edges if other is not edge and other.states[slot]]
        for other in holders:  # a writer died when it had given the slot on, or was about to
            if other.states[slot] == SLOT_READY:
                other.send_again(slot, stream, sequence)
        edge.words[EdgeBlock.READ] -= 1
        if not holders:
            other = way.next_edge()
            self._holders[slot] |= 1 << other.number
            other.send_late(slot, stream, sequence, reason)
            if other is edge:  # its worker is there again
                return
        self._returned(slot, edge.number)  # last: until here the ledger knows that it came back

    def _make_room(self, edge: EdgeWriter) -> None:
        while edge.waiting() >= edge.depth:
            slot = edge.take_back()
            if slot is None:
                return
            self._returned(slot, edge.number)

    def _collect(self) -> None:
        for sequence, slot, stream, _, number in self._free_queue.receive_all():
            if self._frames[slot] == (stream, sequence):  # else it was said twice
                self._returned(slot, number)

    def _returned(self, slot: int, number: int) -> None:
        bit = 1 << number
        if self._holders[slot] & bit:
            self._edges[number].states[slot] = SLOT_FREE
            self._holders[slot] -= bit
            if not self._holders[slot]:
                self._free.append(slot)
                if slot in self._uncleared:  # a dead writer's frame was in it
                    self._uncleared.remove(slot)
                    self.loans[slot].clear()

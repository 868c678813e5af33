"""The ends of a ring in one process: over real pipes, or over plain queues."""

from __future__ import annotations

import mmap
import os
from collections.abc import Sequence
from typing import Any

import numpy as np

from edgert.tensor import FrameHeader, PortSpec, TensorSpec
from edgert.transport.edge import EdgePlan, EdgeWriter
from edgert.transport.ledger import Ledger, LedgerLayout
from edgert.transport.queue import LocalQueue, PipeQueue, TokenQueue, make_pipe
from edgert.transport.reader import RingReader
from edgert.transport.ring import RingPlan, RingWriter
from edgert.transport.slot import Loan, SlotLayout

PORT = PortSpec("numbers", {"n": TensorSpec("i64", (4,))})


def edge_plan(
    name: str, *, depth: int = 2, drops: bool = False, streams: int = 2, **policy: Any
) -> EdgePlan:
    return EdgePlan(name, name, "n", depth, drops, 1, tuple(range(streams)), **policy)


class Ends:
    """Writer and readers of one ring.

    Args:
        slots: Slots of the ring.
        edges: Its edges.
        pipes: Whether tokens go through pipes.
    """

    def __init__(self, slots: int, edges: Sequence[EdgePlan], *, pipes: bool) -> None:
        self._fds: list[int] = []
        self._pipes = pipes
        self.plan = RingPlan("ring", slots, SlotLayout.of(PORT), tuple(edges))
        layout = LedgerLayout(
            (), dict.fromkeys((edge.name for edge in edges), slots), dict.fromkeys("abcd", 1)
        )
        self.ledger = Ledger(mmap.mmap(-1, layout.nbytes), layout)
        self.memory = mmap.mmap(-1, self.plan.nbytes)
        self.free = self.queue()
        self.ready = [self.queue() for _ in edges]
        self.blocks = [self.ledger.edge(edge.name) for edge in edges]
        triples = list(zip(edges, self.ready, self.blocks, strict=True))
        self.writer = RingWriter(
            self.plan, self.memory, self.free, [EdgeWriter(*triple) for triple in triples]
        )
        self.readers = [
            RingReader(edge, self.plan, self.memory, ready, self.free, block)
            for edge, ready, block in triples
        ]

    def queue(self) -> TokenQueue:
        if not self._pipes:
            return LocalQueue()
        ends = make_pipe()
        self._fds += ends
        return PipeQueue(*ends)

    def close(self) -> None:
        for fd in self._fds:
            os.close(fd)


def mark(loan: Loan, stream: int, sequence: int) -> None:
    """Fill a slot with what tells its frame."""
    loan.set_header(FrameHeader(stream=stream, sequence=sequence))
    loan.tensor("n")[:] = (stream, sequence, -sequence, 7)


def marked(reader: RingReader, slot: int) -> tuple[int, int]:
    """Return the frame that a slot is filled with, all of it checked."""
    stream, sequence, negative, seven = np.array(reader.sample(slot).tensors["n"]).tolist()
    assert (negative, seven) == (-sequence, 7)
    return stream, sequence

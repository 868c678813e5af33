"""Frames that a worker of a stage has left undone: they go to another one, each once."""

from __future__ import annotations

import mmap

from edgert.transport.dispatch import Dispatcher, Replica
from edgert.transport.edge import EdgeWriter
from edgert.transport.ledger import (
    SLOT_BACK,
    SLOT_READY,
    SLOT_SUSPECT,
    EdgeBlock,
    Ledger,
    LedgerLayout,
    StageBlock,
)
from edgert.transport.queue import LocalQueue
from edgert.transport.reader import RingReader
from edgert.transport.ring import RingPlan, RingWriter
from edgert.transport.slot import SlotLayout
from edgert.transport.token import END, FRAME, NONE
from tests.unit.transport.ends import PORT, edge_plan, mark

SLOTS = 4


class Two:
    """A ring that two workers of one stage read, and its writer."""

    def __init__(self) -> None:
        self.edges = [edge_plan(f"->s.{n}.n", streams=1, shared="s") for n in (1, 2)]
        layout = LedgerLayout(
            ("s.1", "s.2"), {edge.name: SLOTS for edge in self.edges}, {"camera": SLOTS}
        )
        self.ledger = Ledger(mmap.mmap(-1, layout.nbytes), layout)
        self.plan = RingPlan("ring", SLOTS, SlotLayout.of(PORT), tuple(self.edges))
        self.memory = mmap.mmap(-1, self.plan.nbytes)
        self.free, self.ready = LocalQueue(), [LocalQueue(), LocalQueue()]
        self.blocks = [self.ledger.edge(edge.name) for edge in self.edges]
        self.writer = self.new_writer()
        self.readers = [
            RingReader(edge, self.plan, self.memory, ready, self.free, block)
            for edge, ready, block in zip(self.edges, self.ready, self.blocks, strict=True)
        ]

    def new_writer(self) -> RingWriter:
        triples = zip(self.edges, self.ready, self.blocks, strict=True)
        replicas = [
            Replica(EdgeWriter(*triple), self.ledger.stage(f"s.{n}"), [triple[2]])
            for n, triple in enumerate(triples, 1)
        ]
        return RingWriter(self.plan, self.memory, self.free, [Dispatcher(replicas)])

    def away(self, worker: int) -> None:
        """Let one worker be away, and the other one be there."""
        for n in (0, 1):
            self.ledger.stage(f"s.{n + 1}").words[StageBlock.AWAY] = n == worker

    def send(self, sequence: int) -> None:
        loan = self.writer.loan_nowait()
        assert loan is not None
        mark(loan, 0, sequence)
        self.writer.commit(loan, 0, sequence)

    def receive(self, worker: int) -> tuple[int, int]:
        """Return frame and slot of the next token, which has to be a frame."""
        token = self.readers[worker].receive_nowait()
        assert token is not None
        assert token[3] == FRAME
        return token[0], token[1]


def left_by_the_first(states: list[int]) -> Two:
    """Return a ring of which the first worker has left frames undone: 0, 1 ..."""
    ring = Two()
    ring.away(1)
    for sequence, _ in enumerate(states):
        ring.send(sequence)
    for state in states:
        _, slot = ring.receive(0)
        ring.readers[0].hand_back(slot, state)
    ring.away(0)
    return ring


def test_they_go_to_the_other_worker_though_it_had_later_ones() -> None:
    ring = left_by_the_first([SLOT_BACK, SLOT_BACK])
    ring.send(2)
    ring.writer.deal_again()
    assert [ring.receive(1)[0] for _ in range(3)] == [2, 0, 1]
    counts = [block.counters()["read"] for block in ring.blocks]
    assert counts == [0, 3]
    for slot in range(3):
        ring.readers[1].release(slot, NONE)
    assert [ring.writer.loan_nowait() is not None for _ in range(SLOTS + 1)] == [True] * 4 + [False]


def test_of_frames_that_a_process_has_died_with_one_comes_at_a_time() -> None:
    ring = left_by_the_first([SLOT_SUSPECT, SLOT_SUSPECT, SLOT_BACK])
    ring.writer.deal_again()
    first, slot = ring.receive(1)
    assert first == 0
    assert ring.receive(1)[0] == 2, "one that nobody has died with may come beside it"
    assert ring.readers[1].receive_nowait() is None
    ring.readers[1].release(slot, NONE)
    assert ring.receive(1)[0] == 1


def test_a_writer_that_died_while_it_gave_them_on_gives_each_once() -> None:
    ring = left_by_the_first([SLOT_BACK])
    # It had sent the token, and had not noted yet that the slot is the first one's no more.
    edge = EdgeWriter(ring.edges[1], ring.ready[1], ring.blocks[1])
    edge.send_late(0, 0, 0, NONE)
    ring.writer = ring.new_writer()
    ring.writer.deal_again()
    assert ring.receive(1)[0] == 0
    assert ring.readers[1].receive_nowait() is None
    ring.readers[1].release(0, NONE)
    assert all(ring.writer.loan_nowait() for _ in range(SLOTS))


def test_back_again_the_worker_itself_may_get_them() -> None:
    ring = left_by_the_first([SLOT_BACK])
    ring.away(1)
    ring.writer.deal_again()
    assert ring.blocks[0].states[0] == SLOT_READY
    assert ring.receive(0)[0] == 0
    assert ring.blocks[0].words[EdgeBlock.READ] == 1


def test_workers_hear_of_the_end_when_every_frame_is_done() -> None:
    ring = left_by_the_first([SLOT_BACK])
    ring.writer.end(0)
    assert not ring.writer.send_ends()
    assert [reader.receive_nowait() for reader in ring.readers] == [None, None]
    ring.writer.deal_again()
    _, slot = ring.receive(1)
    assert not ring.writer.send_ends()
    ring.readers[1].release(slot, NONE)
    assert ring.writer.send_ends()
    told = [reader.receive_nowait() for reader in ring.readers]
    assert [token[3] for token in told if token] == [END, END]

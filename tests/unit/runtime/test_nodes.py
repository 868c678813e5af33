"""Nodes over local rings, without any process: what becomes of each frame."""

from __future__ import annotations

import mmap
from collections.abc import Mapping
from typing import ClassVar

import pytest

from edgert.errors import FrameFiltered, FrameLostError
from edgert.runtime.nodes.outputs import Outputs
from edgert.runtime.nodes.source_node import SourceNode
from edgert.runtime.nodes.sync_node import SyncNode
from edgert.stages.base import Inputs, Source, Stage, StageContext, StageOptions
from edgert.stages.base import Outputs as StageOutputs
from edgert.tensor import FrameHeader, PortSpec, TensorSpec
from edgert.transport.edge import EdgePlan, EdgeWriter
from edgert.transport.gate import FlowGate
from edgert.transport.join import Join, Port
from edgert.transport.ledger import Ledger, LedgerLayout
from edgert.transport.queue import LocalQueue
from edgert.transport.reader import RingReader
from edgert.transport.ring import RingPlan, RingWriter
from edgert.transport.slot import SlotLayout
from edgert.transport.token import DONE, FRAME, GAP, LOST, NONE

PORT = PortSpec("numbers", {"a": TensorSpec("i64", (1,)), "b": TensorSpec("i64", (1,))})
IN_FLIGHT = 2


class Room:
    """A ledger, and rings of local queues."""

    def __init__(self) -> None:
        layout = LedgerLayout(("s",), {"in": 4, "out": 4}, {"camera": IN_FLIGHT})
        self.ledger = Ledger(mmap.mmap(-1, layout.nbytes), layout)
        self.block = self.ledger.stage("s")
        self.stream = self.ledger.stream("camera")
        self.done = LocalQueue()
        self.context = StageContext("s", "stage 's'", {}, {})

    def ring(self, name: str) -> tuple[RingWriter, RingReader]:
        edge = EdgePlan(name, "reader", "n", 2, drops=False, held=1, streams=(0,))
        plan = RingPlan(name, 4, SlotLayout.of(PORT), (edge,))
        memory = mmap.mmap(-1, plan.nbytes)
        ready, free, block = LocalQueue(), LocalQueue(), self.ledger.edge(name)
        writer = RingWriter(plan, memory, free, [EdgeWriter(edge, ready, block)])
        return writer, RingReader(edge, plan, memory, ready, free, block)


class Live(Source):
    is_live = True

    def __init__(self, context: StageContext, script: list[object]) -> None:
        super().__init__(StageOptions(), context)
        self.script = script

    def grab(self) -> FrameHeader | None:
        step = self.script.pop(0) if self.script else None
        if isinstance(step, Exception):
            raise step
        return FrameHeader(pts_ns=step) if isinstance(step, int) else None

    def write(self, outputs: StageOutputs) -> None:
        outputs["n"].tensor("a")[:] = 1


def live(room: Room, script: list[object]) -> tuple[SourceNode, RingReader]:
    writer, reader = room.ring("out")
    gate = FlowGate(room.done, room.stream, [0])  # type: ignore[arg-type]  it only receives
    outputs = Outputs({"n": writer}, -1, {}, room.block)
    node = SourceNode(Live(room.context, script), room.block, outputs, gate, 0, 0, lambda _: None)
    return node, reader


def sent(reader: RingReader) -> list[int]:
    """Return the times of the frames that were sent; each is given back."""
    times = []
    while token := reader.receive_nowait():
        if token[3] == FRAME:
            times.append(reader.sample(token[1]).header.pts_ns)
            reader.release(token[1], NONE)
    return times


def test_a_live_source_keeps_the_newest_and_counts_the_last() -> None:
    """The frame that still waits at the gate when the stream ends is dropped, and counted."""
    room = Room()
    node, reader = live(room, [10, 11, 12, 13, 14])
    for _ in range(20):
        node.step()
    assert sent(reader) == [10, 11]
    assert room.stream.counters()["read"] == 5
    assert room.stream.counters()["dropped"] == 3


def test_a_live_source_sends_the_newest_when_the_gate_opens() -> None:
    room = Room()
    node, reader = live(room, [10, 11, 12, 13, 14, 15])
    for _ in range(7):  # two are sent, each after it was grabbed; three more are grabbed
        node.step()
    room.done.send((0, 0, 0, DONE, NONE))
    node.step()
    assert sent(reader) == [10, 11, 14]
    assert room.stream.counters()["dropped"] == 2


@pytest.mark.parametrize("gate_is_full", [False, True])
def test_a_live_frame_that_cannot_be_had(gate_is_full: bool) -> None:
    room = Room()
    full = [10, 11] if gate_is_full else []
    node, _ = live(room, [*full, FrameLostError("torn"), 20])
    for _ in range(10):
        node.step()
    for sequence in range(2):
        room.done.send((sequence, 0, 0, DONE, LOST if sequence == 0 and not gate_is_full else NONE))
    while not node.finished:
        node.step()
    counts = room.stream.counters()
    assert counts["read"] == len(full) + 2
    assert counts["read"] == counts["processed"] + counts["dropped"] + counts["lost"]


class Moody(Stage):
    inputs: ClassVar[Mapping[str, str]] = {"n": "numbers"}
    outputs: ClassVar[Mapping[str, str]] = {"n": "numbers"}

    def process(self, inputs: Inputs, outputs: StageOutputs) -> None:
        number = inputs["n"].header.sequence
        if number == 0:
            outputs["n"].tensor("a")[:] = 5
            raise FrameLostError("half written")
        if number == 1:
            outputs["n"].tensor("a")[:] = 5
            raise FrameFiltered
        outputs["n"].tensor("b")[:] = 6


def test_what_was_written_for_a_lost_frame_is_not_part_of_the_next() -> None:
    room = Room()
    into, from_it = room.ring("in"), room.ring("out")
    node = SyncNode(
        Moody(StageOptions(), room.context),
        room.block,
        Outputs({"n": from_it[0]}, -1, {}, room.block),
        Join([Port("n", [into[1]])]),
    )
    for sequence in range(3):
        loan = into[0].loan_nowait()
        assert loan is not None
        loan.set_header(FrameHeader(sequence=sequence))
        into[0].commit(loan, 0, sequence)
        node.step()
    tokens = [from_it[1].receive_nowait() for _ in range(3)]
    assert [token[3] for token in tokens if token] == [GAP, GAP, FRAME]
    assert tokens[2] is not None
    assert set(from_it[1].sample(tokens[2][1]).tensors) == {"b"}
    assert room.ledger.edge("in").counters() == {
        "read": 3,
        "processed": 2,
        "dropped": 0,
        "lost": 1,
    }

"""Batches over local rings, without any process: when they begin, what becomes of each frame."""

from __future__ import annotations

import mmap
import time
from collections.abc import Mapping, Sequence
from typing import ClassVar

import pytest

from edgert.errors import FrameLostError, RunError
from edgert.runtime.nodes.batch_node import BatchNode
from edgert.runtime.nodes.outputs import Outputs
from edgert.stages.base import Batching, BatchStage, Done, Inputs, StageContext, StageOptions
from edgert.stages.base import Outputs as StageOutputs
from edgert.tensor import FrameHeader, PortSpec, TensorSpec
from edgert.transport.edge import EdgePlan, EdgeWriter
from edgert.transport.join import Join, Port
from edgert.transport.ledger import Ledger, LedgerLayout, StageBlock
from edgert.transport.queue import LocalQueue
from edgert.transport.reader import RingReader
from edgert.transport.ring import RingPlan, RingWriter
from edgert.transport.slot import SlotLayout
from edgert.transport.token import DROPPED, END, FRAME, GAP, NONE

PORT = PortSpec("numbers", {"n": TensorSpec("i64", (1,))})
SLOTS = 32
HOUR_NS = 3_600_000_000_000


class Device(BatchStage):
    """Holds each batch until the test ends it."""

    inputs: ClassVar[Mapping[str, str]] = {"n": "numbers"}
    outputs: ClassVar[Mapping[str, str]] = {"n": "numbers"}

    def __init__(self, context: StageContext, batching: Batching) -> None:
        super().__init__(StageOptions(), context)
        self.how = batching
        self.sizes: list[int] = []
        self.flights: list[tuple[Sequence[tuple[Inputs, StageOutputs]], Done]] = []
        self.ended: list[int] = []

    @property
    def batching(self) -> Batching:
        return self.how

    def require_fit(self, inputs: Inputs) -> None:
        if inputs["n"].tensors["n"][0] < 0:
            raise FrameLostError("it is negative")

    def start_batch(self, frames: Sequence[tuple[Inputs, StageOutputs]], done: Done) -> int:
        self.sizes.append(len(frames))
        self.flights.append((frames, done))
        return self.how.max_size

    def end_stream(self, stream: int) -> None:
        self.ended.append(stream)

    def finish(self, number: int = 0, error: BaseException | None = None) -> None:
        frames, done = self.flights.pop(number)
        for inputs, outputs in frames:
            outputs["n"].tensor("n")[:] = inputs["n"].tensors["n"] * 10
        done(error)


class Bench:
    """A batch node between two rings, fed by hand."""

    def __init__(
        self,
        *,
        max_size: int = 4,
        delay_ns: int = HOUR_NS,
        requests: int = 1,
        streams: int = 2,
        may_come: int = 100,
    ) -> None:
        layout = LedgerLayout(("s",), {"in": SLOTS, "out": SLOTS}, dict.fromkeys("abcd", 1))
        self.ledger = Ledger(mmap.mmap(-1, layout.nbytes), layout)
        self.block = self.ledger.stage("s")
        self.streams = tuple(range(streams))
        self.names = tuple(f"cam{n}" for n in self.streams)
        context = StageContext("s", "stage 's'", {}, {}, streams=self.names)
        self.device = Device(context, Batching(max_size, delay_ns, requests))
        self.into, reader = self._ring("in")
        writer, self.out = self._ring("out")
        self.node = BatchNode(
            self.device,
            self.block,
            Outputs({"n": writer}, -1, {}, self.block),
            Join([Port("n", [reader])]),
            self.device.how,
            dict.fromkeys(self.streams, may_come),
        )
        self.sent = dict.fromkeys(self.streams, 0)

    def _ring(self, name: str) -> tuple[RingWriter, RingReader]:
        edge = EdgePlan(name, "reader", "n", 2, drops=False, held=1, streams=self.streams)
        plan = RingPlan(name, SLOTS, SlotLayout.of(PORT), (edge,))
        memory = mmap.mmap(-1, plan.nbytes)
        ready, free, block = LocalQueue(), LocalQueue(), self.ledger.edge(name)
        writer = RingWriter(plan, memory, free, [EdgeWriter(edge, ready, block)])
        return writer, RingReader(edge, plan, memory, ready, free, block)

    def send(self, stream: int = 0, number: int | None = None) -> None:
        sequence = self.sent[stream]
        self.sent[stream] += 1
        loan = self.into.loan_nowait()
        assert loan is not None
        loan.set_header(FrameHeader(stream=stream, sequence=sequence))
        loan.tensor("n")[:] = sequence if number is None else number
        self.into.commit(loan, stream, sequence)

    def run(self) -> None:
        while self.node.step():
            pass

    def received(self) -> list[tuple[int, int, int, int]]:
        """Return kind, stream, sequence and number of all that came out; slots are given back."""
        found = []
        while token := self.out.receive_nowait():
            sequence, slot, stream, kind, _ = token
            number = -1
            if kind == FRAME:
                number = int(self.out.sample(slot).tensors["n"][0])
                self.out.release(slot, NONE)
            found.append((kind, stream, sequence, number))
        return found


def test_a_full_batch_begins_at_once_and_each_frame_leaves_in_order() -> None:
    bench = Bench()
    for stream in (0, 1, 0, 1, 0):
        bench.send(stream)
    bench.run()
    assert bench.device.sizes == [4]
    bench.device.finish()
    bench.run()
    assert bench.received() == [
        (FRAME, 0, 0, 0),
        (FRAME, 1, 0, 0),
        (FRAME, 0, 1, 10),
        (FRAME, 1, 1, 10),
    ]
    assert bench.device.sizes == [4]  # the fifth waits for others


def test_a_batch_that_is_not_full_waits_no_longer_than_the_delay() -> None:
    bench = Bench()
    before_ns = time.monotonic_ns()
    bench.send()
    bench.run()
    assert bench.device.sizes == []
    assert before_ns + HOUR_NS <= bench.node.due_ns <= time.monotonic_ns() + HOUR_NS
    bench = Bench(delay_ns=0)
    for _ in range(3):
        bench.send()
    bench.run()
    assert bench.device.sizes == [3]


def test_nothing_waits_for_frames_that_cannot_come() -> None:
    bench = Bench(may_come=1)
    bench.send(0)
    bench.run()
    assert bench.device.sizes == []  # the other stream may still send one
    bench.send(1)
    bench.run()
    assert bench.device.sizes == [2]


def test_a_stream_that_has_ended_is_not_waited_for() -> None:
    bench = Bench(may_come=1)
    bench.send(0)
    bench.into.end(1)
    bench.run()
    assert bench.device.sizes == [1]
    assert bench.device.ended == []  # its turn comes behind the frame at work
    bench.device.finish()
    bench.into.end(0)
    bench.run()
    assert bench.device.ended == [1, 0]
    assert [token[:2] for token in bench.received()] == [(FRAME, 0), (END, 1), (END, 0)]
    assert bench.node.finished


def test_the_end_of_every_stream_flushes() -> None:
    bench = Bench()
    bench.send(0)
    bench.into.end(0)
    bench.run()
    assert bench.device.sizes == []
    bench.into.end(1)
    bench.run()
    assert bench.device.sizes == [1]
    assert not bench.node.finished


def test_a_batch_grows_while_the_device_is_busy() -> None:
    bench = Bench(delay_ns=0)
    bench.send()
    bench.run()
    for _ in range(2):
        bench.send()
        bench.run()
    assert bench.device.sizes == [1]
    bench.device.finish()
    bench.run()
    assert bench.device.sizes == [1, 2]


def test_the_last_request_is_for_full_batches() -> None:
    bench = Bench(delay_ns=0, requests=2)
    bench.send()
    bench.run()
    for _ in range(3):
        bench.send()
        bench.run()
    assert bench.device.sizes == [1]
    bench.send()
    bench.run()
    assert bench.device.sizes == [1, 4]
    bench.device.finish(1)  # the younger one first: order is kept
    bench.run()
    assert bench.received() == []
    bench.device.finish()
    bench.run()
    assert [token[2] for token in bench.received()] == [0, 1, 2, 3, 4]


def test_a_gap_keeps_its_turn_and_takes_no_place() -> None:
    bench = Bench(max_size=2)
    bench.send()
    bench.into.gap(0, 1, DROPPED)
    bench.sent[0] = 2
    bench.send()
    bench.run()
    assert bench.device.sizes == [2]
    bench.device.finish()
    bench.run()
    assert [token[::2] for token in bench.received()] == [(FRAME, 0), (GAP, 1), (FRAME, 2)]


def test_a_frame_that_does_not_fit_is_lost_alone() -> None:
    bench = Bench(max_size=2)
    for number in (5, -1, 6):
        bench.send(0, number)
    bench.run()
    assert bench.device.sizes == [2]
    bench.device.finish()
    bench.run()
    assert [token[0] for token in bench.received()] == [FRAME, GAP, FRAME]
    assert bench.block.counters()["lost"] == 1


def test_a_batch_that_was_lost_loses_each_of_its_frames() -> None:
    bench = Bench(max_size=2)
    for _ in range(3):
        bench.send()
    bench.run()
    bench.device.finish(error=FrameLostError("no luck"))
    bench.run()
    assert [token[0] for token in bench.received()] == [GAP, GAP]
    assert bench.block.counters()["lost"] == 2


def test_a_batch_that_failed_counts_each_of_its_frames() -> None:
    bench = Bench(max_size=3)
    for _ in range(3):
        bench.send()
    bench.run()
    bench.device.finish(error=RunError("npu", "it burns"))
    with pytest.raises(RunError, match="it burns"):
        bench.run()
    assert [token[2] for token in bench.received()] == [0, 1, 2]
    assert bench.block.counters()["lost"] == 3
    assert bench.ledger.edge("in").counters()["lost"] == 3


def test_batches_and_their_waits_are_counted() -> None:
    bench = Bench(max_size=4, delay_ns=0)
    for _ in range(3):
        bench.send()
    bench.run()
    bench.device.finish()
    bench.run()
    words = bench.block.words
    assert words[StageBlock.BATCHES] == 1
    assert words[StageBlock.BATCH_FRAMES] == 3
    assert words[StageBlock.BATCH_PADDING] == 1
    assert sum(bench.block.histogram("wait_batch")) == 3
    assert bench.block.counters()["frames"] == 3

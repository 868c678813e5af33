"""A ring against plain lists: every frame is received or dropped, once, in order, and unspoilt."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
)

from edgert.transport.ledger import SLOT_FREE, EdgeBlock
from edgert.transport.token import DROPPED, END, FILTERED, FRAME, GAP, LOST, NONE
from tests.unit.transport.ends import Ends, edge_plan, mark, marked

Frame = tuple[int, int]


class EdgeModel:
    """What one reader must see."""

    def __init__(self, *, depth: int, drops: bool) -> None:
        self.depth = depth
        self.drops = drops
        self.waiting: list[Frame] = []
        self.gaps: Counter[tuple[Frame, int]] = Counter()
        self.ends: list[int] = []
        self.held: dict[int, Frame] = {}
        self.counts = dict.fromkeys(("read", "processed", "dropped", "lost"), 0)

    def commit(self, frame: Frame) -> None:
        while self.drops and len(self.waiting) >= self.depth:
            self.gaps[self.waiting.pop(0), DROPPED] += 1
            self.counts["dropped"] += 1
        self.waiting.append(frame)
        self.counts["read"] += 1


class RingMachine(RuleBasedStateMachine):
    """Any order of loans, commits, gaps, ends, receipts and releases."""

    pipes = True

    @initialize(
        slots=st.integers(1, 6),
        edges=st.lists(st.tuples(st.integers(1, 3), st.booleans()), min_size=1, max_size=3),
    )
    def open(self, slots: int, edges: list[tuple[int, bool]]) -> None:
        plans = [
            edge_plan(f"e{n}", depth=depth, drops=drops) for n, (depth, drops) in enumerate(edges)
        ]
        self.ends = Ends(slots, plans, pipes=self.pipes)
        self.models = [EdgeModel(depth=depth, drops=drops) for depth, drops in edges]
        self.loans: list = []
        self.next = [0, 0]
        self.open_streams = {0, 1}

    @rule()
    def loan(self) -> None:
        used = {slot for model in self.models for slot in model.held}
        waiting = {frame for model in self.models for frame in model.waiting}
        held = {frame for model in self.models for frame in model.held.values()}
        free = self.ends.plan.slots - len(self.loans) - len(waiting | held)
        loan = self.ends.writer.loan_nowait()
        assert (loan is not None) == (free > 0), "a slot was lost, or lent twice"
        if loan is not None:
            assert loan.index not in used
            assert loan.index not in [other.index for other in self.loans]
            self.loans.append(loan)

    @precondition(lambda self: self.loans)
    @rule()
    def put_back(self) -> None:
        self.ends.writer.put_back(self.loans.pop())

    @precondition(lambda self: self.loans and self.open_streams)
    @rule(data=st.data())
    def commit(self, data: st.DataObject) -> None:
        stream = data.draw(st.sampled_from(sorted(self.open_streams)))
        frame = (stream, self.next[stream])
        self.next[stream] += 1
        loan = self.loans.pop(0)
        mark(loan, *frame)
        self.ends.writer.commit(loan, *frame)
        for model in self.models:
            model.commit(frame)

    @precondition(lambda self: self.open_streams)
    @rule(data=st.data(), reason=st.sampled_from([FILTERED, LOST]))
    def gap(self, data: st.DataObject, reason: int) -> None:
        stream = data.draw(st.sampled_from(sorted(self.open_streams)))
        frame = (stream, self.next[stream])
        self.next[stream] += 1
        self.ends.writer.gap(*frame, reason)
        for model in self.models:
            model.gaps[frame, reason] += 1

    @precondition(lambda self: self.open_streams)
    @rule(data=st.data())
    def end(self, data: st.DataObject) -> None:
        stream = data.draw(st.sampled_from(sorted(self.open_streams)))
        self.open_streams.remove(stream)
        self.ends.writer.end(stream)
        for model in self.models:
            model.ends.append(stream)

    @rule(data=st.data())
    def receive(self, data: st.DataObject) -> None:
        n = data.draw(st.integers(0, len(self.models) - 1))
        reader, model = self.ends.readers[n], self.models[n]
        token = reader.receive_nowait()
        if token is None:
            assert not model.waiting
            assert not +model.gaps
            assert not model.ends
            return
        sequence, slot, stream, kind, reason = token
        if kind == FRAME:
            assert (stream, sequence) == model.waiting.pop(0), "out of order, or twice"
            assert marked(reader, slot) == (stream, sequence)
            assert slot not in model.held
            model.held[slot] = (stream, sequence)
        elif kind == GAP:
            assert model.gaps[(stream, sequence), reason] > 0
            model.gaps[(stream, sequence), reason] -= 1
        else:
            assert kind == END
            model.ends.remove(stream)

    @rule(data=st.data(), outcome=st.sampled_from([NONE, FILTERED, LOST]))
    def release(self, data: st.DataObject, outcome: int) -> None:
        n = data.draw(st.integers(0, len(self.models) - 1))
        reader, model = self.ends.readers[n], self.models[n]
        if not model.held:
            return
        slot = data.draw(st.sampled_from(sorted(model.held)))
        assert marked(reader, slot) == model.held.pop(slot), "written while it was held"
        reader.release(slot, outcome)
        model.counts["lost" if outcome == LOST else "processed"] += 1

    @invariant()
    def counts_are_the_models(self) -> None:
        for block, model in zip(self.ends.blocks, self.models, strict=True):
            assert block.counters() == model.counts
            assert block.outstanding() == len(model.waiting) + len(model.held)
            assert block.words[EdgeBlock.ENDED] == 2 - len(self.open_streams)

    def teardown(self) -> None:
        if not hasattr(self, "ends"):
            return
        for reader, model in zip(self.ends.readers, self.models, strict=True):
            while token := reader.receive_nowait():
                if token[3] == FRAME:
                    model.held[token[1]] = (token[2], token[0])
            for slot in model.held:
                reader.release(slot, NONE)
        for block in self.ends.blocks:
            counts = block.counters()
            assert counts["read"] == counts["processed"] + counts["dropped"] + counts["lost"]
        for loan in self.loans:
            self.ends.writer.put_back(loan)
        again = [self.ends.writer.loan_nowait() for _ in range(self.ends.plan.slots)]
        assert sorted(loan.index for loan in again if loan) == list(range(self.ends.plan.slots))
        for block in self.ends.blocks:
            assert bytes(block.states) == bytes([SLOT_FREE]) * self.ends.plan.slots
        self.ends.close()


class LocalRingMachine(RingMachine):
    pipes = False


RingMachine.TestCase.settings = LocalRingMachine.TestCase.settings = settings(
    max_examples=200, stateful_step_count=50, deadline=None
)
TestOverPipes = RingMachine.TestCase
TestOverPlainQueues = LocalRingMachine.TestCase


@pytest.mark.parametrize("pipes", [True, False])
def test_the_newest_frames_are_kept(pipes: bool) -> None:
    ends = Ends(6, [edge_plan("e", depth=3, drops=True)], pipes=pipes)
    for sequence in range(1000):
        loan = ends.writer.loan_nowait()
        assert loan is not None
        mark(loan, 0, sequence)
        ends.writer.commit(loan, 0, sequence)
    received = []
    while token := ends.readers[0].receive_nowait():
        if token[3] == FRAME:
            received.append(token[0])
    assert received == [997, 998, 999]
    ends.close()


def test_a_frame_taken_back_frees_its_slot_only_when_all_readers_have() -> None:
    ends = Ends(3, [edge_plan("keep"), edge_plan("drop", depth=1, drops=True)], pipes=True)
    for sequence in range(2):
        loan = ends.writer.loan_nowait()
        assert loan is not None
        ends.writer.commit(loan, 0, sequence)
    assert ends.writer.loan_nowait() is not None
    assert ends.writer.loan_nowait() is None  # frame 0 was taken back from one; the other has it
    token = ends.readers[0].receive_nowait()
    assert token is not None
    ends.readers[0].release(token[1], NONE)
    assert ends.writer.loan_nowait() is not None
    ends.close()

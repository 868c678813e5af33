"""The flow gate against a plain model: credits, several leaves, answers given twice, takeovers."""

from __future__ import annotations

import mmap
import os

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from edgert.transport.gate import FlowGate, settle_after_death
from edgert.transport.ledger import Ledger, LedgerLayout, StreamBlock
from edgert.transport.queue import PipeQueue, make_pipe
from edgert.transport.token import DONE, DROPPED, FILTERED, LOST, NONE

OUTCOMES = (NONE, FILTERED, DROPPED, LOST)


def stream_block(entries: int) -> StreamBlock:
    layout = LedgerLayout(("s",), {"e": 3}, {"before": 2, "camera": entries})
    return Ledger(mmap.mmap(-1, layout.nbytes), layout).stream("camera")


def counter_of(outcomes: set[int]) -> str:
    """The worst outcome counts, except that one leaf's drop (a preview) is no drop of the frame."""
    if LOST in outcomes:
        return "lost"
    return "dropped" if outcomes == {DROPPED} else "processed"


class GateMachine(RuleBasedStateMachine):
    @initialize(entries=st.integers(1, 5), leaves=st.sets(st.integers(0, 63), min_size=1))
    def open(self, entries: int, leaves: set[int]) -> None:
        self.fds = make_pipe()
        self.done = PipeQueue(*self.fds)
        self.block = stream_block(entries)
        self.leaves = sorted(leaves)
        self.entries = entries
        self.gate = FlowGate(self.done, self.block, self.leaves)
        self.sequence = 0
        self.flying: dict[int, dict[int, int]] = {}  # sequence -> leaf -> outcome
        self.counts = dict.fromkeys(("read", "processed", "dropped", "lost"), 0)

    @rule()
    def admit(self) -> None:
        is_open = self.gate.is_open()  # settles only where it must
        if not is_open:
            self.settle_model()
            assert len(self.flying) == self.entries
        else:
            self.gate.admit(self.sequence)
            self.flying[self.sequence] = {}
            self.sequence += 1
            self.counts["read"] += 1

    @rule()
    def drop(self) -> None:
        self.gate.drop()
        self.counts["read"] += 1
        self.counts["dropped"] += 1

    @precondition(lambda self: self.flying)
    @rule(data=st.data(), outcome=st.sampled_from(OUTCOMES))
    def answer(self, data: st.DataObject, outcome: int) -> None:
        """Any leaf answers for any frame, perhaps a second time with another outcome."""
        sequence = data.draw(st.sampled_from(sorted(self.flying)))
        leaf = data.draw(st.sampled_from(self.leaves))
        self.done.send((sequence, leaf, 0, DONE, outcome))
        self.flying[sequence].setdefault(leaf, outcome)

    @rule(outcome=st.sampled_from(OUTCOMES), back=st.integers(1, 10))
    def answer_for_a_frame_that_is_gone(self, outcome: int, back: int) -> None:
        gone = self.sequence - back
        if gone >= 0 and gone not in self.flying:
            self.done.send((gone, self.leaves[0], 0, DONE, outcome))

    @rule()
    def answer_of_a_leaf_that_is_not_asked(self) -> None:
        others = set(range(64)) - set(self.leaves)
        if self.flying and others:
            self.done.send((min(self.flying), min(others), 0, DONE, LOST))

    @rule()
    def settle(self) -> None:
        self.gate.settle()
        self.settle_model()

    @rule()
    def take_over(self) -> None:
        """The source restarts: its gate finds what is in flight."""
        self.gate = FlowGate(self.done, self.block, self.leaves)

    def settle_model(self) -> None:
        for sequence, outcomes in list(self.flying.items()):
            if len(outcomes) == len(self.leaves):
                self.counts[counter_of(set(outcomes.values()))] += 1
                del self.flying[sequence]
        assert self.block.in_flight() == sorted(self.flying)
        assert self.gate.in_flight == len(self.flying)

    @invariant()
    def nothing_is_counted_twice(self) -> None:
        if hasattr(self, "block"):
            counts = self.block.counters()
            settled = counts["processed"] + counts["dropped"] + counts["lost"]
            assert counts["read"] == settled + len(self.block.in_flight())

    def teardown(self) -> None:
        if not hasattr(self, "block"):
            return
        self.gate.settle()
        self.settle_model()
        assert {key: self.block.counters()[key] for key in self.counts} == self.counts
        assert settle_after_death(self.done, self.block, self.leaves) == len(self.flying)
        counts = self.block.counters()
        assert counts["read"] == counts["processed"] + counts["dropped"] + counts["lost"]
        assert not self.block.in_flight()
        for fd in self.fds:
            os.close(fd)


GateMachine.TestCase.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
TestGate = GateMachine.TestCase


@pytest.mark.parametrize("words_written", range(1, 5))
def test_a_gate_killed_while_it_admits_a_frame(words_written: int) -> None:
    """Whichever of its writes was the last, the account adds up."""
    fds = make_pipe()
    block = stream_block(2)
    at = block.entry_at(1)
    writes = [(at + 1, 1), (at + 2, 0), (at, 8), (StreamBlock.READ, 1)]
    for word, value in writes[:words_written]:
        block.words[word] = value
    settle_after_death(PipeQueue(*fds), block, [0])
    counts = block.counters()
    assert counts["read"] == counts["lost"] == (words_written == 4)
    assert not block.in_flight()
    for fd in fds:
        os.close(fd)


def test_a_gate_killed_while_it_settles_a_frame() -> None:
    """Counted, and still in the table: it is not counted again."""
    fds = make_pipe()
    block = stream_block(2)
    FlowGate(PipeQueue(*fds), block, [0]).admit(0)
    block.words[StreamBlock.PROCESSED] += 1
    assert settle_after_death(PipeQueue(*fds), block, [0]) == 0
    counters = {name: count for name, count in block.counters().items() if count}
    assert counters == {"read": 1, "processed": 1}
    for fd in fds:
        os.close(fd)

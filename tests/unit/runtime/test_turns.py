"""Turns at a limited device: never too many, none lost, the urgent first, nobody passed over."""

from __future__ import annotations

import logging
import mmap
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgert.plan.restart import RestartPolicy
from edgert.plan.structs import StagePlan, Turns, WorkerPlan
from edgert.runtime.turns import TurnKeeper, create_turns, permits_for
from edgert.runtime.watch import why_hung
from edgert.transport.ledger import Ledger, LedgerLayout, StageBlock
from edgert.transport.permits import RANKS, Permits

NPU = "emulated:NPU"


def planned(stage: str) -> StagePlan:
    return StagePlan(stage, "infer", {}, {}, {}, {}, {}, (0,), 1)


class Room:
    """Stages that share devices, all in this process."""

    def __init__(self, limits: Mapping[str, int], **priorities: str) -> None:
        ranks = {stage: RANKS[priority] for stage, priority in priorities.items()}
        self.turns = Turns(dict(limits), ranks)
        layout = LedgerLayout(tuple(priorities), {}, {})
        self.ledger = Ledger(mmap.mmap(-1, layout.nbytes), layout)
        self.fds: dict[str, int] = {}
        create_turns(self.turns, self.fds)
        self.keeper = TurnKeeper(self.turns, self.ledger, self.fds)

    def permits(self, stage: str, device: str = NPU) -> Permits:
        log = logging.getLogger("edgert.test")
        found = permits_for(self.turns, stage, device, self.ledger, self.fds, log)
        assert found is not None
        return found

    def kill(self, stage: str) -> None:
        self.keeper.worker_gone([planned(stage)])

    def free(self, device: str = NPU) -> int:
        try:
            return len(os.read(self.fds[f"permit/{device}/r"], 100))
        except BlockingIOError:
            return 0


@contextmanager
def room(limits: Mapping[str, int], **priorities: str) -> Iterator[Room]:
    made = Room(limits, **priorities)
    try:
        yield made
    finally:
        for fd in made.fds.values():
            os.close(fd)


def test_the_urgent_come_first_then_who_has_waited_longest() -> None:
    with room({NPU: 1}, a="low", b="low", c="high", d="normal") as made:
        stages = {name: made.permits(name) for name in "abcd"}
        assert stages["a"].take()
        assert [stages[name].take() for name in "abdc"] == [False] * 4
        order: list[str] = []
        holder = "a"
        for _ in range(4):
            stages[holder].keep(0)
            (holder,) = [name for name in stages if name not in order and stages[name].take()]
            order.append(holder)
        assert order == ["c", "d", "a", "b"]


def test_a_busy_stage_lets_others_have_their_turn() -> None:
    with room({NPU: 1}, busy="normal", other="normal") as made:
        busy, other = made.permits("busy"), made.permits("other")
        assert busy.take()
        assert not other.take()
        busy.keep(0)
        assert not busy.take()
        assert other.take()
        other.keep(0)
        assert busy.take()


def test_what_is_handed_over_unasked_for_is_passed_on() -> None:
    with room({NPU: 2}, a="normal", b="normal") as made:
        a, b = made.permits("a"), made.permits("b")
        assert a.take()
        assert a.take()
        assert not b.take()
        a.keep(0)  # both are handed to b, which wants one
        assert b.take()
        b.keep(1)
        assert a.take()
        b.keep(0)
        a.keep(0)
        assert made.free() == 2


def test_devices_have_lines_of_their_own() -> None:
    with room({NPU: 1, "emulated:GPU": 1}, a="normal", b="high", c="normal") as made:
        a, b, c = made.permits("a"), made.permits("b", "emulated:GPU"), made.permits("c")
        assert a.take()
        assert b.take()
        assert not b.take()
        assert not c.take()
        a.keep(0)
        assert not b.take()
        assert c.take()


def test_a_device_without_a_limit_and_one_that_is_called_otherwise(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with room({"openvino:GPU": 1}, a="normal") as made:
        log = logging.getLogger("edgert.test")
        for device in ("openvino:CPU", "openvino:GPU.0"):
            assert permits_for(made.turns, "a", device, made.ledger, made.fds, log) is None
        assert caplog.messages == [
            "stage 'a': the limit of 'openvino:GPU' is not its own: it runs on 'openvino:GPU.0'"
        ]


def test_who_waits_for_its_turn_does_not_hang() -> None:
    with room({NPU: 1}, a="high", b="low") as made:
        a, b = made.permits("a"), made.permits("b")
        assert a.take()
        assert not b.take()
        for stage in "ab":
            words = made.ledger.stage(stage).words
            words[StageBlock.BUSY], words[StageBlock.PROGRESS] = 1, 60 * 10**9
        a_worker, b_worker = (WorkerPlan(name, (planned(name),), (0,), "") for name in "ab")
        assert "has been at one frame for 60.0 s" in why_hung(a_worker, made.ledger, 60 * 10**9)
        assert not why_hung(b_worker, made.ledger, 60 * 10**9)


def test_who_has_nothing_to_do_may_be_silent_for_longer_than_a_frame_may_take() -> None:
    with room({NPU: 1}, a="normal") as made:
        policy = RestartPolicy(hang_s=0.4)
        worker = WorkerPlan("a", (planned("a"),), (0,), "", restart=policy)
        made.ledger.stage("a").words[StageBlock.PROGRESS] = 60 * 10**9
        assert not why_hung(worker, made.ledger, 61 * 10**9)
        assert "no sign of life for 2.5 s" in why_hung(worker, made.ledger, int(62.5e9))


@settings(max_examples=100, deadline=None)
@given(
    limit=st.integers(1, 3),
    priorities=st.lists(st.sampled_from(["low", "normal", "high"]), min_size=1, max_size=4),
    random=st.randoms(use_true_random=False),
)
def test_never_too_many_and_none_lost(limit: int, priorities: list[str], random: Random) -> None:
    names = [f"s{n}" for n in range(len(priorities))]
    with room({NPU: limit}, **dict(zip(names, priorities, strict=True))) as made:
        stages = {name: made.permits(name) for name in names}
        busy = dict.fromkeys(names, 0)
        for _ in range(60):
            name = random.choice(names)
            action = random.random()
            if action < 0.5:
                busy[name] += stages[name].take()
            elif action < 0.95:
                busy[name] = max(0, busy[name] - 1)
                stages[name].keep(busy[name])
            else:
                made.kill(name)
                busy[name] = 0
                stages[name] = made.permits(name)  # another takes its place
            assert sum(busy.values()) <= limit
        for name in [name for name in names if busy[name]]:
            made.kill(name)
            del stages[name]
        for _ in names:  # whoever waits gets its turn, and gives it back
            for name, stage in stages.items():
                if made.ledger.stage(name).words[StageBlock.WAITS]:
                    stage.take()
                stage.keep(0)
        assert made.free() == limit

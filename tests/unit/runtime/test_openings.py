"""A worker that is long in opening its stages is told of, once for each start."""

from __future__ import annotations

import pytest

from edgert.control.messages import Trying
from edgert.plan.structs import StagePlan, WorkerPlan
from edgert.runtime import crew
from edgert.runtime.crew import Member
from edgert.runtime.openings import AFTER_S, Openings


def member(*stages: str, **attributes: object) -> Member:
    plans = tuple(StagePlan(name, "infer", {}, {}, {}, {}, {}, (0,), 1) for name in stages)
    return Member(WorkerPlan("detector", plans, (0,), ""), pid=7, **attributes)


def test_who_is_long_in_opening_is_told_once(caplog: pytest.LogCaptureFixture) -> None:
    openings, slow = Openings(), member("detector")
    for now_s in (0.0, AFTER_S - 1, AFTER_S, AFTER_S + 1, 900.0):
        openings.step([slow], now_s)
    assert [record.getMessage() for record in caplog.records] == [
        "worker 'detector' has been opening stage 'detector' for 10 s"
    ]


def test_the_device_that_is_tried_is_named(caplog: pytest.LogCaptureFixture) -> None:
    openings, slow = Openings(), member("one", "two", try_by_s=120.0)
    slow.trying = Trying("detector", "two", "openvino:NPU", 120.0, {})
    openings.step([slow], 0.0)
    openings.step([slow], 11.0)
    assert [record.getMessage() for record in caplog.records] == [
        "worker 'detector' has been opening 2 stages for 11 s (now openvino:NPU, which has 120 s)"
    ]


def test_who_is_ready_or_gone_is_left_alone(caplog: pytest.LogCaptureFixture) -> None:
    openings = Openings()
    ready, gone = member("one", state=crew.READY), member("one", exited=True)
    for now_s in (0.0, 900.0):
        openings.step([ready, gone], now_s)
    assert not caplog.records

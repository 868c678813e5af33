from __future__ import annotations

import logging

import pytest

from edgert.device.throttling import Throttling
from edgert.runtime.throttle import ThrottleWatch

QUIET = Throttling(2, 0.5, 7, (), {})


def watching(*later: Throttling) -> ThrottleWatch:
    found = iter((QUIET, *later))
    return ThrottleWatch(lambda: next(found))


def test_what_was_before_the_run_is_not_told(caplog: pytest.LogCaptureFixture) -> None:
    assert watching(QUIET).totals() == {}
    assert not caplog.text


def test_it_is_told_when_it_begins_and_not_at_every_look(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)
    hot = Throttling(2, 0.5, 9, ("thermal-cpufreq-0",), {0: 0.5, 1: 0.6})
    busy = Throttling(12, 2.75, 9, (), {})
    watch = watching(hot, hot._replace(hot_events=10), busy, busy)
    for now_s in (1e6, 1e6 + 5, 1e6 + 10):
        watch.look(now_s)
    assert [record.message for record in caplog.records] == [
        "the CPU is throttled: cores were too hot 2 times",
        "the CPU is throttled: slowed down because of heat: thermal-cpufreq-0",
        "the CPU is throttled: at most 50% of its clock for 2 cores",
        "the CPU is throttled: its control group's quota held cores back for 2.2 s in 10 periods "
        "(cpu.max, CPUQuota=)",
    ]
    assert watch.totals() == {
        "quota_periods": 10,
        "quota_s": 2.25,
        "hot_events": 2,
        "cooled": ["thermal-cpufreq-0"],
        "capped": {"0": 0.5, "1": 0.6},
    }

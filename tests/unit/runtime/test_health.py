"""What a watchdog outside of a run has to know: whether it makes progress."""

import os

from edgert.plan.structs import WorkerPlan
from edgert.runtime import crew
from edgert.runtime.crew import Member
from edgert.runtime.health import STILL_WITHIN_S, Health, cpu_ticks


def member(state: str, **attributes: object) -> Member:
    return Member(WorkerPlan("detector", (), (0,), ""), pid=7, state=state, **attributes)


def test_workers_at_work_waiting_for_a_restart_or_done_are_well():
    health = Health(lambda pid: 0)
    members = [member(state) for state in (crew.READY, crew.WAITING, crew.FINISHED)]
    assert not any(health.why_stuck(members, now_s) for now_s in (0.0, 1e6))


def test_a_worker_that_compiles_for_an_hour_is_well():
    health = Health(_counting())
    starting = [member(crew.STARTING)]
    assert not any(health.why_stuck(starting, now_s) for now_s in range(0, 3600, 60))


def test_a_worker_that_starts_and_does_nothing_is_stuck():
    health = Health(lambda pid: 42)
    starting = [member(crew.STARTING)]
    assert not health.why_stuck(starting, 0.0)
    assert not health.why_stuck(starting, STILL_WITHIN_S)
    said = health.why_stuck(starting, STILL_WITHIN_S + 1)
    assert said == "worker 'detector' has been starting for 121 s without doing a thing"
    assert not health.why_stuck([member(crew.READY)], STILL_WITHIN_S + 2)
    assert not health.why_stuck(starting, STILL_WITHIN_S + 3)  # another start: counted anew


def test_a_device_has_the_time_that_the_file_gives_it():
    health = Health(lambda pid: 42)
    opening = [member(crew.STARTING, try_by_s=900.0)]
    assert not any(health.why_stuck(opening, now_s) for now_s in (0.0, 200.0, 899.0))


def test_a_worker_that_hangs_has_a_moment_to_die():
    health = Health(lambda pid: 0)
    hung = [member(crew.READY, hung="it has given no sign of life for 11.0 s")]
    assert not health.why_stuck(hung, 0.0)
    assert health.why_stuck(hung, 3.0) == "worker 'detector' hangs and cannot be killed"
    assert not health.why_stuck([member(crew.READY)], 4.0)
    hung[0].exited = True
    assert not health.why_stuck(hung, 100.0)


def test_cpu_time_is_that_of_the_kernel():
    before = cpu_ticks(os.getpid())
    while cpu_ticks(os.getpid()) == before:
        sum(range(10_000))
    assert cpu_ticks(0) == 0


def _counting():
    seen = iter(range(1000))
    return lambda pid: next(seen)

"""When a dead worker is started again: a pure function of the times before and of chance."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from edgert.plan.restart import RestartPolicy

POLICIES = st.builds(
    RestartPolicy,
    delay_ms=st.floats(0, 1e4),
    max_delay_ms=st.floats(0, 1e5),
    jitter=st.floats(0, 1),
    max_restarts=st.integers(0, 50),
    window_s=st.floats(0.1, 1e4),
)
CHANCE = st.floats(0, 1)


def test_the_wait_doubles_up_to_the_longest() -> None:
    policy = RestartPolicy(delay_ms=100, max_delay_ms=500, jitter=0, max_restarts=9)
    waits = [policy.next_delay_s([100.0] * n, 100.0, 0.5) for n in range(5)]
    assert waits == [0.1, 0.2, 0.4, 0.5, 0.5]


def test_never_means_never() -> None:
    assert RestartPolicy(policy="never").next_delay_s([], 0.0, 0.5) is None


@given(POLICIES, st.lists(st.floats(0, 1e6)), st.floats(0, 1e6), CHANCE)
def test_no_more_restarts_than_allowed_in_any_window(
    policy: RestartPolicy, before_s: list[float], now_s: float, chance: float
) -> None:
    recent = [at_s for at_s in before_s if at_s > now_s - policy.window_s]
    delay_s = policy.next_delay_s(before_s, now_s, chance)
    assert (delay_s is None) == (len(recent) >= policy.max_restarts)


@given(POLICIES, st.integers(0, 60), CHANCE)
def test_the_wait_stays_within_its_bounds(policy: RestartPolicy, count: int, chance: float) -> None:
    delay_s = policy.next_delay_s([5.0] * count, 5.0, chance)
    if delay_s is not None:
        assert 0 <= delay_s <= policy.max_delay_ms * (1 + policy.jitter) / 1e3 + 1e-9


@given(POLICIES.filter(lambda policy: policy.max_restarts), CHANCE)
def test_a_worker_that_dies_once_a_window_lives_for_ever(
    policy: RestartPolicy, chance: float
) -> None:
    now_s, restarts_s = 0.0, [0.0]
    for _ in range(20):
        now_s += policy.window_s * 1.01
        delay_s = policy.next_delay_s(restarts_s, now_s, chance)
        assert delay_s is not None
        restarts_s.append(now_s)

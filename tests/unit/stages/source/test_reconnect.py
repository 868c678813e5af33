import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgert.pipeline.adapter import read_as
from edgert.stages.source.reconnect import Reconnect
from edgert.stages.source.video_options import VideoOptions


def test_the_wait_doubles_up_to_its_limit() -> None:
    policy = Reconnect(delay_ms=500, max_delay_ms=4000)
    waits = [policy.next_delay_s(failures, 0.999999) for failures in range(1, 7)]
    assert [round(wait or 0, 2) for wait in waits] == [0.5, 1.0, 2.0, 4.0, 4.0, 4.0]


@given(
    st.integers(10, 10_000), st.integers(10, 100_000), st.integers(1, 10**9), st.floats(0, 0.999)
)
def test_a_wait_lies_between_half_and_the_whole(
    delay_ms: int, max_delay_ms: int, failures: int, chance: float
) -> None:
    wait_s = Reconnect(delay_ms=delay_ms, max_delay_ms=max_delay_ms).next_delay_s(failures, chance)
    assert wait_s is not None
    assert min(delay_ms, max_delay_ms) / 2000 <= wait_s <= max_delay_ms / 1000


def test_by_default_there_is_no_end() -> None:
    assert Reconnect().next_delay_s(10**9, 0.5) is not None


@pytest.mark.parametrize("off", [False, "off", {"attempts": 0}])
def test_switched_off_the_first_failure_is_the_last(off: object) -> None:
    options = read_as(VideoOptions, {"uri": "rtsp://camera/1", "reconnect": off})
    assert options.reconnect.next_delay_s(1, 0.5) is None


def test_so_many_attempts_and_no_more() -> None:
    policy = Reconnect(attempts=2)
    given_up = [policy.next_delay_s(failures, 0.5) is None for failures in (1, 2, 3)]
    assert given_up == [False, False, True]


def test_one_that_comes_and_goes_is_tried_less_and_less_and_not_given_up() -> None:
    policy = Reconnect(delay_ms=500, max_delay_ms=4000, attempts=1)
    waits = [policy.next_delay_s(1, 0.999999, short) for short in (0, 1, 2, 3)]
    assert [round(wait or 0, 2) for wait in waits] == [0.5, 0.5, 1.0, 2.0]

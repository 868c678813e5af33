from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from edgert.stages.source.timeline import Timeline


def test_times_that_grow_are_kept() -> None:
    timeline = Timeline()
    assert [timeline.stamp(t) for t in (0, 33, 66)] == [0, 33, 66]
    assert (timeline.restamped, timeline.derived) == (0, 0)


def test_times_that_do_not_grow_are_stamped_just_after_the_last() -> None:
    timeline = Timeline()
    assert [timeline.stamp(t) for t in (0, 33, 33, 10, 66)] == [0, 33, 34, 35, 66]
    assert timeline.restamped == 2


def test_a_missing_time_is_one_frame_after_the_last() -> None:
    timeline = Timeline(step_ns=40)
    assert [timeline.stamp(t) for t in (None, None, 200, None)] == [0, 40, 200, 240]
    assert timeline.derived == 3


def test_a_missing_time_uses_how_long_the_last_frame_is_shown() -> None:
    timeline = Timeline(step_ns=40)
    assert [timeline.stamp(0, 100), timeline.stamp(None)] == [0, 100]


def test_the_second_play_of_a_file_goes_on_where_the_first_ended() -> None:
    timeline = Timeline(step_ns=40)
    first = [timeline.stamp(t) for t in (0, 40)]
    timeline.start_again()
    assert first + [timeline.stamp(t) for t in (0, 40)] == [0, 40, 80, 120]
    assert timeline.restamped == 0


@given(st.lists(st.none() | st.integers(-(10**12), 10**12)))
def test_times_always_grow(times: list[int | None]) -> None:
    timeline = Timeline()
    stamped = [timeline.stamp(t) for t in times]
    assert all(a < b for a, b in pairwise(stamped))

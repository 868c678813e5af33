from hypothesis import given
from hypothesis import strategies as st

from edgert.stages.source.epochs import RESTART_NS, Epochs

S = 1_000_000_000


def stamps(times: list[int | None]) -> list[tuple[int, int]]:
    epochs = Epochs()
    return [epochs.stamp(time, number * S) for number, time in enumerate(times)]


def test_times_begin_at_the_first_frame() -> None:
    assert stamps([7 * S, 8 * S]) == [(0, 0), (0, S)]


def test_a_new_connection_is_a_new_epoch() -> None:
    epochs = Epochs()
    epochs.stamp(7 * S, 0)
    epochs.restart()
    assert epochs.stamp(8 * S, S) == (1, 0)
    assert epochs.count == 2


def test_time_that_goes_back_far_is_a_new_epoch_and_a_little_is_not() -> None:
    assert stamps([70 * S, 71 * S, 2 * S, 3 * S]) == [(0, 0), (0, S), (1, 0), (1, S)]
    assert stamps([70 * S, 71 * S, 71 * S - RESTART_NS]) == [(0, 0), (0, S), (0, S + 1)]


def test_without_times_arrival_counts() -> None:
    assert stamps([None, None, None]) == [(0, 0), (0, S), (0, 2 * S)]


def test_a_first_frame_without_a_time_does_not_move_the_others() -> None:
    assert stamps([None, 50 * S, 51 * S]) == [(0, 0), (0, S), (0, 2 * S)]


@given(st.lists(st.one_of(st.none(), st.integers(-(10**12), 10**12))), st.data())
def test_times_grow_within_an_epoch_and_epochs_never_fall(
    times: list[int | None], data: st.DataObject
) -> None:
    epochs = Epochs()
    last = (0, -1)
    for number, time in enumerate(times):
        if data.draw(st.booleans()):
            epochs.restart()
        now = epochs.stamp(time, number * 40_000_000)
        assert now > last
        last = now
    assert epochs.count == (last[0] + 1 if times else 0)

"""Which worker gets the next frame: devices of any speed, some failing, one that recovers."""

from __future__ import annotations

from dataclasses import dataclass, field

from hypothesis import given, settings
from hypothesis import strategies as st

from edgert.transport.balance import (
    OUT_AFTER,
    Seen,
    Standing,
    choose,
    expected_ns,
    in_order,
    look,
    tried,
)

MS = 1_000_000


@dataclass
class Device:
    """One inference at a time, by a clock that the test turns."""

    takes_ns: int
    fails: bool = False
    queue: list[int] = field(default_factory=list)
    given: int = 0
    done: int = 0
    lost: int = 0
    pace_ns: int = 0

    def give(self, now_ns: int) -> None:
        self.given += 1
        self.queue.append(max([now_ns, *self.queue[-1:]]) + self.takes_ns)

    def settle(self, now_ns: int) -> None:
        while self.queue and self.queue[0] <= now_ns:
            self.queue.pop(0)
            if self.fails:
                self.lost += 1
            else:
                self.done += 1
                self.pace_ns += (
                    (self.takes_ns - self.pace_ns) // 4 if self.pace_ns else self.takes_ns
                )

    def seen(self) -> Seen:
        return Seen(self.done, self.lost, len(self.queue), self.pace_ns)


class Bench:
    """Devices that share frames."""

    def __init__(self, *devices: Device) -> None:
        self.devices = devices
        self.standings = [Standing()] * len(devices)
        self.now_ns = MS

    def run(self, frames: int, every_ns: int, in_flight: int) -> None:
        """Give out frames at an interval while no more than ``in_flight`` are under way."""
        for _ in range(frames):
            self._wait(every_ns)
            while sum(len(device.queue) for device in self.devices) >= in_flight:
                self._wait(MS // 4)
            self._give()

    def _wait(self, for_ns: int) -> None:
        self.now_ns += for_ns
        for device in self.devices:
            device.settle(self.now_ns)

    def _give(self) -> None:
        seen = [device.seen() for device in self.devices]
        pairs = zip(self.standings, seen, strict=True)
        self.standings = [look(standing, each, self.now_ns) for standing, each in pairs]
        number = choose(self.standings, seen, self.now_ns)
        if not in_order(self.standings[number], seen[number]):
            self.standings[number] = tried(self.standings[number], self.now_ns)
        self.devices[number].give(self.now_ns)

    def given(self) -> list[int]:
        return [device.given for device in self.devices]


paces = st.integers(4, 50).map(lambda ms: ms * MS)


# One that is slower by more than the frames in flight is left out, and rightly: the frame it takes
# would come last, and hold up those behind it. What it could have done is then no loss.
MUCH_SLOWER = 5
comparable = st.integers(4, 20).map(lambda ms: ms * MS)


@given(takes=st.lists(comparable, min_size=2, max_size=4))
@settings(max_examples=60, deadline=None)
def test_kept_busy_devices_do_what_they_can(takes: list[int]) -> None:
    bench = Bench(*(Device(each) for each in takes))
    bench.run(1000, 0, 4 * len(takes))
    could = sum(bench.now_ns / each for each in takes)
    assert sum(bench.given()) >= 0.95 * could


@given(takes=st.lists(paces, min_size=2, max_size=4))
@settings(max_examples=30, deadline=None)
def test_much_slower_devices_cost_the_others_nothing(takes: list[int]) -> None:
    bench = Bench(*(Device(each) for each in takes))
    bench.run(2000, 0, 4 * len(takes))
    near = [each for each in takes if each <= MUCH_SLOWER * min(takes)]
    assert sum(bench.given()) >= 0.95 * sum(bench.now_ns / each for each in near)


def test_a_slow_camera_is_served_by_the_fast_device_alone() -> None:
    bench = Bench(Device(20 * MS), Device(10 * MS))
    bench.run(3000, 33 * MS, 8)
    assert bench.given() == [1, 2999]  # the one frame shows how fast it is


def test_a_device_that_only_fails_gets_little_and_is_tried_ever_more_rarely() -> None:
    bench = Bench(Device(MS, fails=True), Device(10 * MS))
    bench.run(6000, 10 * MS, 4)
    assert OUT_AFTER <= bench.given()[0] <= OUT_AFTER + 8  # in a minute
    bench.devices[0].fails = False
    bench.run(6000, 10 * MS, 4)
    assert bench.given()[0] > 2000


def test_a_device_that_became_slow_gets_nothing_and_comes_back_when_it_recovers() -> None:
    fast, other = Device(5 * MS), Device(10 * MS)
    bench = Bench(fast, other)
    bench.run(1000, 10 * MS, 4)
    fast.takes_ns = 200 * MS
    before = fast.given
    bench.run(2000, 20 * MS, 4)
    assert fast.given - before < 20
    fast.takes_ns = 5 * MS
    bench.run(6000, 20 * MS, 4)
    before = fast.given
    bench.run(1000, 20 * MS, 4)
    assert fast.given - before > 900


def test_a_device_that_hangs_gets_no_more() -> None:
    hung, other = Device(5 * MS), Device(10 * MS)
    bench = Bench(hung, other)
    bench.run(100, 10 * MS, 4)
    hung.takes_ns = 10**15
    before = hung.given
    bench.run(500, 10 * MS, 8)
    assert hung.given - before <= 2


seen = st.builds(
    Seen,
    *(st.integers(0, 9) for _ in range(3)),
    st.integers(0, 10**10),
    st.booleans(),
)


@given(looks=st.lists(st.tuples(st.lists(seen, min_size=3, max_size=3), st.integers(0, 10**10))))
@settings(max_examples=200, deadline=None)
def test_whatever_the_ledger_shows_somebody_gets_the_frame(
    looks: list[tuple[list[Seen], int]],
) -> None:
    """Counts may even go back: a worker killed between two writes, another in its place."""
    standings, now_ns = [Standing()] * 3, 1
    for shown, later_ns in looks:
        now_ns += later_ns
        pairs = list(zip(standings, shown, strict=True))
        standings = [look(standing, each, now_ns) for standing, each in pairs]
        chosen = choose(standings, shown, now_ns)
        assert 0 <= chosen < 3
        assert all(expected_ns(*pair, now_ns) >= 0 for pair in zip(standings, shown, strict=True))
        away = [each.is_away for each in shown]
        assert not away[chosen] or all(away)
        out = [
            standing.failures >= OUT_AFTER or each.is_away
            for standing, each in zip(standings, shown, strict=True)
        ]
        if out[chosen] and not all(out):
            assert now_ns >= standings[chosen].try_at_ns > 0

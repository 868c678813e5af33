"""Round trips between two real processes."""

from __future__ import annotations

import json

import pytest

from edgert import isolate
from edgert.bench.link import PROCESS, LinkReport, RoundTrip, bench_link, two_cores
from edgert.cli.bench import render_link
from edgert.device.cores import allowed
from edgert.errors import ResourceError, RunError
from tests.conftest import Edgert


def test_every_size_and_the_floor_are_measured() -> None:
    report = bench_link(rounds=150, sizes=(4096, 100_000))
    assert set(report.round_trip_us) == {"4096", "100000"}
    assert report.floor_us > 0
    for trip in report.round_trip_us.values():
        assert 0 < trip.p50 <= trip.p99
    assert set(report.cores) <= set(allowed())


def test_the_command_prints_the_schema(edgert: Edgert) -> None:
    done = edgert("bench", "link", "--json", "--rounds", "100")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["schema"] == "edgert.bench.link/1"
    assert found["floor_us"] > 0
    assert list(found["round_trip_us"]) == ["4096", "3110400", "12441600"]
    assert all(set(trip) == {"p50", "p99"} for trip in found["round_trip_us"].values())


def test_a_peer_that_fails_is_told() -> None:
    wrong = (allowed()[0], 4000)
    arguments = {"sizes": [4096], "rounds": 100, "slots": 3, "cores": wrong}
    with pytest.raises(RunError, match="the process at the other end has failed"):
        isolate.call(PROCESS, arguments, timeout_s=30, place="bench link")


def test_rings_that_do_not_fit_are_refused() -> None:
    with pytest.raises(ResourceError, match="rings of bench link"):
        bench_link(rounds=100, sizes=(1 << 50,))


@pytest.mark.parametrize(("cores", "pair"), [((0, 1, 2), (0, 1)), ((5, 7), (5, 7)), ((3,), (3, 3))])
def test_two_different_cores_where_there_are_two(
    cores: tuple[int, ...], pair: tuple[int, int]
) -> None:
    assert two_cores(cores) == pair


def test_the_table_has_the_ratios_and_says_where() -> None:
    trips = {"4096": RoundTrip(60, 90), "3110400": RoundTrip(66, 91), "12441600": RoundTrip(63, 92)}
    report = LinkReport(floor_us=40, round_trip_us=trips, rounds=100, cores=(0, 0))
    text = render_link(report)
    assert "core 0 alone: there is no other" in text
    assert text.splitlines()[4].split() == ["4", "KiB", "frame", "60", "90.00", "1.50"]
    assert text.endswith("a 4K frame takes 1.05 times as long as one of 4 KiB")

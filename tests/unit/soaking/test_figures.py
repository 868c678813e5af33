"""Figures of tools/soak: trends, gaps that something explains, and what no bound may let pass."""

from __future__ import annotations

import os
from operator import attrgetter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tools.soaking import figures
from tools.soaking.harm import Harm
from tools.soaking.lines import Lines
from tools.soaking.verdict import Bounds, faults
from tools.soaking.watch import Sample, memory_mb

PSS = attrgetter("pss_mb")
BOUNDS = Bounds(mb_an_hour=1, silence_s=10, warm_up_s=0)


def sample(look: int, part: str = "a", pid: int = 1, pss_mb: float = 50, fds: int = 9) -> Sample:
    return Sample(look, look * 5.0, "live", part, pid, pss_mb, pss_mb, fds)


def harm(begun_s: float, ended_s: float, stream: str = "front") -> Harm:
    return Harm("freeze worker", "live/front", (stream,), begun_s, ended_s)


@given(st.floats(-100, 100), st.floats(1, 500))
def test_a_straight_line_has_its_slope(mb_an_hour: float, start_mb: float) -> None:
    points = [(t, start_mb + mb_an_hour * t / 3600) for t in range(0, 600, 5)]
    found = figures.slope([points])
    assert found.mb_an_hour == pytest.approx(mb_an_hour, abs=0.02)
    assert found.error == pytest.approx(0, abs=0.01)


def test_a_leak_is_seen_over_restarts_that_hide_it() -> None:
    """Each process begins anew with little, so that all together do not grow."""
    samples = [sample(n, pid=n // 60, pss_mb=50 + (n % 60) * 0.1) for n in range(240)]
    assert figures.part_slopes(samples)["a"].mb_an_hour == pytest.approx(72, abs=0.1)
    total = figures.total_slope(samples, PSS).mb_an_hour
    assert total is not None
    assert abs(total) < 5


def test_what_new_processes_take_is_no_leak() -> None:
    samples = [sample(n, pid=n // 30, pss_mb=50 + (n % 30) * 0.1) for n in range(240)]
    assert figures.part_slopes(samples)["a"] == figures.Slope(None, None)


def test_looks_without_all_parts_do_not_count() -> None:
    samples = [s for n in range(20) for s in (sample(n), sample(n, "b")) if n % 3 or s.part == "a"]
    assert figures.total_slope(samples, PSS) == figures.Slope(0, 0)


def test_too_little_has_no_slope() -> None:
    assert figures.slope([[(0, 1), (1, 2)]]) == figures.Slope(None, None)
    assert figures.slope([]) == figures.Slope(None, None)


def test_fds_of_a_moment_are_no_growth() -> None:
    counts = [9, 9, 12, 9, 9, 11, 9, 15, 9]
    assert figures.fds([sample(n, fds=c) for n, c in enumerate(counts)]) == {"a": (9, 9, 15)}


def test_a_silence_that_a_harm_explains_is_none() -> None:
    times = [0, 1, 9, 10]
    assert figures.longest_gap(times) == 8
    assert figures.longest_silence(times, [harm(1, 8)], "front") == 1
    assert figures.longest_silence(times, [harm(1, 8)], "back") == 8
    assert figures.longest_silence(times, [harm(1, 5), harm(2, 7), harm(3, 4)], "front") == 2


@given(st.lists(st.tuples(st.integers(0, 20), st.integers(0, 20)).map(sorted)))
def test_covered_is_the_union(spans: list[list[int]]) -> None:
    ticks = {t for begun, ended in spans for t in range(max(begun, 5), min(ended, 15))}
    assert figures.covered(5, 15, [(a, b) for a, b in spans]) == len(ticks)


def test_the_wait_after_a_harm_is_not_that_for_what_was_under_way() -> None:
    killed = harm(10, 10)
    assert figures.wait_after(killed, [9.9, 10.1, 11.5, 11.6], [killed], "front") == (
        pytest.approx(1.4)
    )
    assert figures.wait_after(killed, [9.8, 9.9], [killed], "front") is None


def good() -> dict[str, Any]:
    flat = {"mb_an_hour": 0.2, "error": 0.3}
    return {
        "exit_code": 0,
        "error": "",
        "uncounted": {},
        "left_over": [],
        "tracebacks": 0,
        "restarts": {"results": 1},
        "streams": {"front": {"processed": 10}},
        "results": {"front": {"seen": 11, "out_of_order": 0, "longest_silence_s": 1.0}},
        "judged": True,
        "pss_mb": flat,
        "own_mb": flat,
        "own_mb_by_part": {"front": flat, "back": {"mb_an_hour": None, "error": None}},
        "fds": {"front": {"first": 20, "last": 20, "most": 30}},
    }


def test_what_is_good_has_no_fault() -> None:
    assert faults("live", good(), BOUNDS) == []


def test_a_short_time_tells_no_trend() -> None:
    """The fds are those of a camera over UDP that was away at first: it has three sockets."""
    short = {
        "judged": False,
        "pss_mb": {"mb_an_hour": 900.0, "error": 1.0},
        "fds": {"back": {"first": 23, "last": 26, "most": 27}},
    }
    assert faults("live", good() | short, BOUNDS) == []


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"exit_code": 1, "error": "x"}, "exit code 1: x"),
        ({"uncounted": {"front": 2}}, "uncounted frames: {'front': 2}"),
        ({"left_over": ["/run/a"]}, "left over: ['/run/a']"),
        ({"tracebacks": 1}, "1 traceback in the log"),
        ({"restarts": {}}, "front: 10 frames processed, 11 results"),
        ({"streams": {}}, "front: 0 frames processed, 11 results"),
        (
            {"pss_mb": {"mb_an_hour": 3.0, "error": 0.5}},
            "memory of all (PSS) grows by 3.0 MB an hour (error 0.5)",
        ),
        (
            {"fds": {"front": {"first": 9, "last": 14, "most": 14}}},
            "fds of front grow from 9 to 14",
        ),
        (
            {"results": {"front": {"seen": 10, "out_of_order": 3, "longest_silence_s": 11.0}}},
            "front: 3 results out of order",
        ),
    ],
)
def test_each_bound_is_held_against_what_was_seen(change: dict[str, Any], said: str) -> None:
    assert f"live: {said}" in faults("live", good() | change, BOUNDS)


def test_memory_of_a_process_that_is_there_and_of_one_that_is_not() -> None:
    pss, own = memory_mb(os.getpid())
    assert pss > 0
    assert own > 0
    with pytest.raises(FileNotFoundError):
        memory_mb(2**22 + 1)


def test_a_file_of_results_is_read_line_by_whole_line(tmp_path: Path) -> None:
    file = tmp_path / "results.jsonl"
    lines = Lines(file)
    assert lines.take() == []
    file.write_text("one\ntw")
    assert lines.take() == [b"one"]
    with file.open("a") as more:
        more.write("o\n")
    assert lines.take() == [b"two"]

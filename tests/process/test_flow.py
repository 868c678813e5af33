"""How frames flow: limits, live and file sources, streams that end apart, edges that drop."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from typing import Any

import msgspec
import pytest

from edgert.runtime.run import Run, RunOptions
from edgert.runtime.wiring import keys_for
from edgert.runtime.zygote import MAX_FDS
from tests.process.runs import assert_adds_up, load

pytestmark = pytest.mark.process


def rows(file: Path) -> dict[int, list[int]]:
    """Return the sequences that a Write sink wrote, by stream."""
    found: dict[int, list[int]] = defaultdict(list)
    for line in file.read_text().splitlines():
        if not line.endswith("end"):
            found[int(line.split()[0])].append(int(line.split()[1]))
    return found


def write(folder: Path, source: Any, name: str = "out", **keys: Any) -> dict[str, Any]:
    return {"kind": "Write", "inputs": {"n": source}, "path": str(folder / f"{name}.txt"), **keys}


def test_max_frames(tmp_path: Path) -> None:
    stages = {
        "left": {"kind": "Numbers", "count": 100},
        "right": {"kind": "Numbers", "count": 7},
        "out": write(tmp_path, ["left.n", "right.n"]),
    }
    summary = load(tmp_path, stages).run(RunOptions(max_frames=20))
    assert summary.streams["left"]["processed"] == 20
    assert summary.streams["right"]["processed"] == 7
    assert summary.memory["pss_mb"] is None  # it was over before its memory was looked at
    assert rows(tmp_path / "out.txt") == {0: list(range(20)), 1: list(range(7))}


def test_duration(tmp_path: Path) -> None:
    stages = {
        "src": {"kind": "Numbers", "count": 10**9},
        "out": write(tmp_path, "src.n", wait_ms=1),
    }
    summary = load(tmp_path, stages).run(RunOptions(duration_s=0.3))
    assert 0 < summary.frames["processed"] == summary.frames["read"]


def test_a_live_source_drops_at_its_gate(tmp_path: Path) -> None:
    """S15: a slow stage behind a live source: old frames are dropped, ages stay bounded."""
    stages = {
        "src": {"kind": "Live", "count": 150, "fps": 200},
        "slow": {"kind": "Step", "inputs": {"n": "src.n"}, "wait_ms": 50},
        "out": write(tmp_path, "slow.n"),
    }
    summary = load(tmp_path, stages, in_flight=2).run()
    counts = summary.frames
    assert counts["read"] == 150
    assert counts["read"] == counts["processed"] + counts["dropped"]
    assert counts["dropped"] > counts["processed"]
    for link in summary.links.values():
        assert link["dropped"] == link["lost"] == 0
    # Two frames in flight and one kept at the gate: nothing waits for more than three services.
    assert summary.latency_ms.p50 is not None
    assert summary.latency_ms.p50 < 3.5 * 50
    numbers = [int(line.split()[2]) - 1 for line in lines_of(tmp_path / "out.txt")]
    assert numbers == sorted(set(numbers))
    assert numbers[-1] > 130


def test_files_never_drop(tmp_path: Path) -> None:
    """S16: two sources, a slow stage: every frame of both."""
    stages = {
        "left": {"kind": "Numbers", "count": 100},
        "right": {"kind": "Numbers", "count": 100},
        "out": write(tmp_path, ["left.n", "right.n"], wait_ms=2),
    }
    summary = load(tmp_path, stages).run()
    for stream in ("left", "right"):
        assert summary.streams[stream] == {"read": 100, "processed": 100, "dropped": 0, "lost": 0}
    assert rows(tmp_path / "out.txt") == {0: list(range(100)), 1: list(range(100))}


def test_one_of_two_streams_ends_early(tmp_path: Path) -> None:
    """E4: a join goes on with the other stream."""
    sources = ["short.n", "long.n"]
    stages = {
        "short": {"kind": "Numbers", "count": 30},
        "long": {"kind": "Numbers", "count": 300},
        "one": {"kind": "Step", "inputs": {"n": sources}},
        "both": {
            "kind": "Both",
            "inputs": {"a": sources, "b": "one.n"},
            "path": str(tmp_path / "both.txt"),
        },
    }
    summary = load(tmp_path, stages).run()
    assert summary.streams["short"]["processed"] == 30
    assert summary.streams["long"]["processed"] == 300
    assert_adds_up(msgspec.to_builtins(summary))
    assert {k: len(v) for k, v in rows(tmp_path / "both.txt").items()} == {0: 30, 1: 300}


def test_frames_sent_at_once_at_the_start_all_arrive(tmp_path: Path) -> None:
    """E9: five frames and the end, while the readers open slowly."""
    stages = {
        "src": {"kind": "Numbers", "count": 5},
        "one": {"kind": "Step", "inputs": {"n": "src.n"}},
        "out": write(tmp_path, "one.n", opens_ms=200),
    }
    pipeline = load(tmp_path, stages)
    for _ in range(3):
        assert pipeline.run().frames == {"read": 5, "processed": 5, "dropped": 0, "lost": 0}
        assert rows(tmp_path / "out.txt") == {0: [0, 1, 2, 3, 4]}


@pytest.mark.parametrize(
    ("fault", "lost"), [({"lose": [5, 6, 20]}, {5, 6, 20}), ({"die_at": 20}, set())]
)
def test_half_a_frame_is_never_seen(tmp_path: Path, fault: dict[str, Any], lost: set[int]) -> None:
    """P5: a source fails, or dies, in the middle of a frame, in a slot that had another before."""
    stages = {
        "src": {"kind": "Torn", "count": 40, "words": 64, **fault},
        "out": write(tmp_path, "src.n") | {"kind": "WriteWhole"},
    }
    summary = load(tmp_path, stages).run()
    assert summary.frames["lost"] == len(lost)
    assert (tmp_path / "out.txt").read_text().splitlines()[:-1] == [
        f"0 {number} [{number}]" for number in range(40) if number not in lost
    ]


def test_an_empty_source(tmp_path: Path) -> None:
    stages = {"src": {"kind": "Numbers", "count": 0}, "out": write(tmp_path, "src.n")}
    assert load(tmp_path, stages).run().frames["read"] == 0
    assert (tmp_path / "out.txt").read_text() == "0 end\n"


@pytest.mark.parametrize(
    ("when_full", "kept", "numbers"),
    [
        ("drop-oldest", slice(-3, None), [997, 998, 999]),
        ("reject", slice(3), [0, 1, 2]),
    ],
)
def test_an_edge_that_drops_keeps_the_newest_or_the_oldest(
    tmp_path: Path, when_full: str, kept: slice, numbers: list[int]
) -> None:
    """T9: a slow reader of 1,000 numbered frames; sums, order, and which ones are there."""
    edge = {"from": "src.n", "queue": {"slots": 3, "when_full": when_full}}
    stages = {
        "src": {"kind": "Numbers", "count": 1000},
        "fast": write(tmp_path, "src.n", "fast"),
        "slow": write(tmp_path, edge, "slow", wait_ms=2),
    }
    summary = load(tmp_path, stages).run()
    assert summary.frames["processed"] == 1000
    link = summary.links["src.n->slow.n"]
    assert link["read"] == 1000 == link["processed"] + link["dropped"]
    assert link["dropped"] > 0
    seen = rows(tmp_path / "slow.txt")[0]
    assert len(seen) == link["processed"]
    assert seen == sorted(set(seen))
    assert seen[kept] == numbers
    assert rows(tmp_path / "fast.txt") == {0: list(range(1000))}


def test_frames_that_are_too_old_are_dropped_when_their_turn_comes(tmp_path: Path) -> None:
    edge = {"from": "src.n", "queue": {"slots": 4, "max_age_ms": 60}}
    stages = {
        "src": {"kind": "Live", "count": 100, "fps": 400},
        "slow": {"kind": "Step", "inputs": {"n": edge}, "wait_ms": 40},
        "out": write(tmp_path, "slow.n"),
    }
    summary = load(tmp_path, stages, in_flight=4).run()
    link = summary.links["src.n->slow.n"]
    assert link["dropped"] > 0
    assert link["read"] == link["processed"] + link["dropped"]
    counts = summary.frames
    assert counts["read"] == 100 == counts["processed"] + counts["dropped"]
    assert counts["processed"] == len(lines_of(tmp_path / "out.txt"))


def test_a_fast_stream_does_not_starve_a_slow_one(tmp_path: Path) -> None:
    """Every frame of the slow camera comes through, while the fast one drops most of its own."""
    stages = {
        "fast": {"kind": "Live", "count": 600, "fps": 600},
        "slow": {"kind": "Live", "count": 10, "fps": 10},
        "one": {"kind": "Step", "inputs": {"n": ["fast.n", "slow.n"]}, "wait_ms": 8},
        "out": write(tmp_path, "one.n"),
    }
    summary = load(tmp_path, stages).run()
    assert summary.streams["slow"] == {"read": 10, "processed": 10, "dropped": 0, "lost": 0}
    assert summary.streams["fast"]["dropped"] > summary.streams["fast"]["processed"]


def test_a_preview_that_hangs_does_not_hold_the_main_way(tmp_path: Path) -> None:
    """Its edge drops: 500 frames pass while it keeps the first."""
    edge = {"from": "src.n", "queue": {"slots": 2, "when_full": "drop-oldest"}}
    stages = {
        "src": {"kind": "Numbers", "count": 500, "lose": [7]},
        "one": {"kind": "Step", "inputs": {"n": "src.n"}},
        "out": write(tmp_path, "one.n"),
        "preview": {"kind": "Step", "inputs": {"n": edge}, "wait_ms": 600_000},
        "shown": write(tmp_path, "preview.n", "shown"),
    }
    run = Run(load(tmp_path, stages).plan, RunOptions(stop_timeout_s=0.5))
    run.start()
    while run.progress().frames["processed"] < 499:
        run.step(0.1)
    run.stop()
    while run.is_running:
        run.step(0.1)
    outcome = run.finish()
    assert "did not drain within 0.5 s; killed: preview, shown" in str(outcome.errors[0])
    assert outcome.summary.frames == {"read": 500, "processed": 499, "dropped": 0, "lost": 1}
    assert outcome.summary.links["src.n->preview.n"]["dropped"] == 499 - 3


def test_an_optional_output_that_nobody_reads(tmp_path: Path) -> None:
    """T8: it never blocks anything."""
    stages = {
        "src": {"kind": "Numbers", "count": 200},
        "fork": {"kind": "Fork", "inputs": {"n": "src.n"}},
        "out": write(tmp_path, "fork.n"),
    }
    summary = load(tmp_path, stages).run()
    assert summary.frames["processed"] == 200
    assert list(summary.links) == ["src.n->fork.n", "fork.n->out.n"]


def test_two_outputs_read_by_a_join(tmp_path: Path) -> None:
    stages = {
        "src": {"kind": "Numbers", "count": 200, "lose": [4]},
        "fork": {"kind": "Fork", "inputs": {"n": "src.n"}},
        "one": {"kind": "Step", "inputs": {"n": "fork.extra"}, "filter": [8]},
        "both": {
            "kind": "Both",
            "inputs": {"a": "fork.n", "b": "one.n"},
            "path": str(tmp_path / "both.txt"),
        },
    }
    summary = load(tmp_path, stages).run()
    assert summary.frames == {"read": 200, "processed": 199, "dropped": 0, "lost": 1}
    assert rows(tmp_path / "both.txt")[0] == [n for n in range(200) if n not in {4, 8}]


def test_copies_are_counted(tmp_path: Path) -> None:
    stages = {
        "src": {"kind": "Numbers", "count": 10, "words": 100},
        "one": {"kind": "Step", "inputs": {"n": "src.n"}, "copies": True},
        "two": {"kind": "Step", "inputs": {"n": "one.n"}},
        "out": write(tmp_path, "two.n"),
    }
    copied = {name: s.copied_bytes for name, s in load(tmp_path, stages).run().stages.items()}
    assert copied == {"src": 0, "one": 10 * 800, "two": 0, "out": 0}


def shared(folder: Path, **workers: str) -> dict[str, dict[str, Any]]:
    stages = {
        "left": {"kind": "Numbers", "count": 60, "lose": [2]},
        "right": {"kind": "Numbers", "count": 90},
        "one": {"kind": "Step", "inputs": {"n": ["left.n", "right.n"]}, "lose": [5], "filter": [7]},
        "two": {"kind": "AsyncStep", "inputs": {"n": "one.n"}, "lose": [10]},
        "both": {
            "kind": "Both",
            "inputs": {"a": ["left.n", "right.n"], "b": "two.n"},
            "path": str(folder / "both.txt"),
        },
        "out": write(folder, "two.n"),
    }
    for stage, worker in workers.items():
        stages[stage]["worker"] = worker
    return stages


@pytest.mark.parametrize(
    "workers",
    [
        {},
        {"one": "w", "two": "w"},
        {"left": "w", "right": "w"},
        {"left": "w", "one": "w", "both": "w"},
        {"two": "w", "both": "w", "out": "w"},
        dict.fromkeys(("left", "right", "one", "two", "both", "out"), "w"),
    ],
    ids=["apart", "middle", "sources", "ends", "leaves", "all"],
)
def test_stages_of_one_worker_give_the_same(tmp_path: Path, workers: dict[str, str]) -> None:
    summary = load(tmp_path, shared(tmp_path, **workers)).run()
    assert summary.streams["left"] == {"read": 60, "processed": 57, "dropped": 0, "lost": 3}
    assert summary.streams["right"] == {"read": 90, "processed": 88, "dropped": 0, "lost": 2}
    assert_adds_up(msgspec.to_builtins(summary))
    gone = {5, 7, 9}
    expected = {0: [n for n in range(60) if n not in gone | {2}], 1: sorted(set(range(90)) - gone)}
    assert rows(tmp_path / "both.txt") == expected
    assert rows(tmp_path / "out.txt") == expected
    assert len({stage.pid for stage in summary.stages.values()}) == len(
        {workers.get(name, name) for name in summary.stages}
    )


def test_sixteen_streams_through_one_worker(tmp_path: Path) -> None:
    """It has more fds than one message to the zygote carries."""
    numbers = range(16)
    stages: dict[str, dict[str, Any]] = {}
    for n in numbers:
        stages[f"src{n}"] = {"kind": "Numbers", "count": 40 + n, "worker": f"feed{n % 2}"}
        stages[f"one{n}"] = {"kind": "Step", "inputs": {"n": f"src{n}.n"}, "worker": "work"}
    for sink in range(5):
        edges = [f"one{n}.n" for n in numbers]
        stages[f"out{sink}"] = write(tmp_path, edges, f"out{sink}", worker="sinks")
    pipeline = load(tmp_path, stages)
    assert len(keys_for(pipeline.plan, pipeline.plan.worker_of("one0"))) > MAX_FDS
    summary = pipeline.run()
    for n in numbers:
        assert summary.streams[f"src{n}"]["processed"] == 40 + n
    for sink in range(5):
        found = rows(tmp_path / f"out{sink}.txt")
        assert found == {n: list(range(40 + n)) for n in numbers}


def test_a_worker_is_told_more_than_a_packet_holds(tmp_path: Path) -> None:
    """As some hundred streams do: the kernel takes no packet above 212992 bytes."""
    stages = {
        "src": {"kind": "Numbers", "count": 5, "remark": "much" * 60_000},
        "out": write(tmp_path, ["src.n"], "out"),
    }
    assert load(tmp_path, stages).run().frames["processed"] == 5


def lines_of(file: Path) -> list[str]:
    return [line for line in file.read_text().splitlines() if not line.endswith("end")]

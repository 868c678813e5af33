"""Stages that run as several workers: order, counts, joins, deaths; devices that share frames."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from edgert.backends.registry import is_installed
from edgert.runtime import crew
from edgert.runtime.errands import Restarting
from edgert.runtime.run import Run, RunOptions
from edgert.runtime.status import Pace, status_of
from edgert.transport.ledger import StageBlock
from tests.process.runs import NEVER, assert_adds_up, load, run, started, write_pipeline
from tests.process.tensors import inferring
from tests.process.test_flow import rows, write
from tests.process.test_restarts import run_with_kills

pytestmark = pytest.mark.process


def shared(source: Any, kind: str = "Shared", **keys: Any) -> dict[str, Any]:
    return {"kind": kind, "inputs": {"n": source}, **keys}


@pytest.mark.parametrize("kind", ["Shared", "AsyncShared"])
def test_frames_of_several_streams_stay_in_order(tmp_path: Path, kind: str) -> None:
    stages = {
        "left": {"kind": "Numbers", "count": 120, "lose": [3, 50]},
        "right": {"kind": "Numbers", "count": 70},
        "one": shared(["left.n", "right.n"], kind, replicas=3, lose=[11, 12, 69]),
        "out": write(tmp_path, "one.n"),
    }
    summary = load(tmp_path, stages).run()
    assert_adds_up(msgspec.to_builtins(summary))
    lost = {0: {3, 50, 11, 12, 69}, 1: {11, 12, 69}}
    assert rows(tmp_path / "out.txt") == {
        stream: [n for n in range(count) if n not in lost[stream]]
        for stream, count in enumerate((120, 70))
    }
    shares = [summary.stages[f"one.{n}"] for n in (1, 2, 3)]
    assert sum(share.frames for share in shares) == summary.frames["processed"] == 115 + 67
    assert sum(share.lost for share in shares) == 6
    assert all(share.frames for share in shares)
    assert len({share.pid for share in shares}) == 3


def test_replicas_behind_replicas_and_a_join_behind_them(tmp_path: Path) -> None:
    stages = {
        "src": {"kind": "Numbers", "count": 100},
        "one": shared("src.n", replicas=2, filter=[7, 8]),
        "two": shared("one.n", "AsyncShared", replicas=3),
        "both": {
            "kind": "Both",
            "inputs": {"a": "two.n", "b": "src.n"},
            "path": str(tmp_path / "both.txt"),
        },
        "out": write(tmp_path, "two.n"),
    }
    summary = load(tmp_path, stages, in_flight=3).run()
    assert_adds_up(msgspec.to_builtins(summary))
    assert summary.frames["processed"] == 100
    kept = [n for n in range(100) if n not in (7, 8)]
    assert (tmp_path / "both.txt").read_text().splitlines() == [f"0 {n} {n + 2} {n}" for n in kept]
    assert rows(tmp_path / "out.txt") == {0: kept}


def test_one_frame_in_flight_and_a_duration(tmp_path: Path) -> None:
    stages = {
        "src": {"kind": "Numbers", "count": 10**9},
        "one": shared("src.n", replicas=2),
        "out": write(tmp_path, "one.n"),
    }
    summary = load(tmp_path, stages, in_flight=1).run(RunOptions(duration_s=0.3))
    assert 0 < summary.frames["processed"] == summary.frames["read"]
    assert rows(tmp_path / "out.txt")[0] == list(range(summary.frames["read"]))


def test_a_replica_that_dies_ends_the_run_and_loses_its_own_frames(tmp_path: Path) -> None:
    stages = {
        "src": {"kind": "Numbers", "count": 10**6},
        "one": shared("src.n", replicas=2, die_at=100),
        "out": write(tmp_path, "one.n"),
    }
    code, _, err, summary = run(write_pipeline(tmp_path, stages, restart=NEVER))
    assert code == 1
    assert "was ended by SIGKILL" in err
    assert "while it ran stage one." in err
    assert "did not drain" not in err
    assert_adds_up(summary)
    assert 1 <= summary["frames"]["lost"] < 20  # it is given three more at most, once they are lost
    written = rows(tmp_path / "out.txt")[0]
    assert written == sorted(set(written))
    assert len(written) == summary["frames"]["processed"]


FEW = {"delay_ms": 1, "max_restarts": 2}


def test_a_worker_whose_budget_is_used_up_is_done_without(tmp_path: Path) -> None:
    stages = {
        "src": {"kind": "Numbers", "count": 300},
        "one": shared("src.n", replicas=2, bad_worker="one.1"),
        "out": write(tmp_path, "one.n"),
    }
    code, _, err, summary = run(write_pipeline(tmp_path, stages, restart=FEW))
    assert code == 0, err
    assert "worker 'one.1' is away for 60 s, the others of its stage do its work" in err
    assert_adds_up(summary)
    assert summary["frames"] == {"read": 300, "processed": 300, "dropped": 0, "lost": 0}
    assert rows(tmp_path / "out.txt") == {0: list(range(300))}
    assert summary["stages"]["one.1"]["restarts"] == 2
    assert "was ended by SIGKILL" in summary["stages"]["one.1"]["away"]
    assert "stage one.1: it is away" in err
    assert "away" not in summary["stages"]["one.2"]


def test_when_the_last_worker_is_gone_the_run_ends(tmp_path: Path) -> None:
    stages = {
        "src": {"kind": "Numbers", "count": 10**6},
        "one": shared("src.n", replicas=2, bad_worker="all"),
        "out": write(tmp_path, "one.n"),
    }
    code, _, err, summary = run(write_pipeline(tmp_path, stages, restart=FEW))
    assert code == 1
    assert err.count("is away for") == 1
    assert "it was started again 2 times, allowed are 2 within 60 s" in err.splitlines()[-1]
    assert "did not drain" not in err
    assert_adds_up(summary)
    assert summary["frames"]["lost"] > 0


def test_a_worker_that_was_away_comes_back(tmp_path: Path) -> None:
    stages = {
        "src": {"kind": "Numbers", "count": 10**6},
        "one": shared("src.n", replicas=2, bad_worker="one.2", mended=str(tmp_path / "mended")),
        "out": write(tmp_path, "one.n"),
    }
    restart = {"delay_ms": 1, "max_delay_ms": 1, "max_restarts": 1, "window_s": 0.2}
    going = Run(load(tmp_path, stages, restart=restart).plan, RunOptions())
    going.start()
    member = going._supervisor.members["one.2"]
    while member.absences < 2:
        going.step(0.01)
    assert member.state == crew.AWAY
    (tmp_path / "mended").touch()
    frames = going._supervisor.ledger.stage("one.2").words
    while not frames[StageBlock.FRAMES]:
        going.step(0.01)
    while going.is_running:
        going.stop() if going.progress().phase == "running" else None
        going.step(0.01)
    outcome = going.finish()
    assert outcome.exit_code == 0, outcome.errors
    assert_adds_up(msgspec.to_builtins(outcome.summary))
    assert outcome.summary.frames["lost"] == 0
    assert rows(tmp_path / "out.txt")[0] == list(range(outcome.summary.frames["read"]))


def test_a_worker_that_is_away_is_shown_and_tried_on_request(tmp_path: Path) -> None:
    stages = {
        "src": {"kind": "Numbers", "count": 10**6},
        "one": shared("src.n", replicas=2, bad_worker="one.2", mended=str(tmp_path / "mended")),
        "out": write(tmp_path, "one.n"),
    }
    going = Run(load(tmp_path, stages, restart={"max_restarts": 0}).plan, RunOptions())
    supervisor = going._supervisor
    going.start()
    while supervisor.members["one.2"].state != crew.AWAY:
        going.step(0.01)
    shown = status_of(supervisor, Pace(), []).stages
    assert (shown["one.1"].state, shown["one.1"].why_down) == ("ready", "")
    assert shown["one.2"].state == "away"
    assert "was ended by SIGKILL" in shown["one.2"].why_down
    (tmp_path / "mended").touch()
    errand = Restarting(supervisor, "one.2")
    while not (said := errand.step()):
        going.step(0.01)
    assert said.startswith("stage 'one.2' runs again")
    assert status_of(supervisor, Pace(), []).stages["one.2"].why_down == ""
    going.stop()
    while going.is_running:
        going.step(0.01)
    outcome = going.finish()
    assert outcome.exit_code == 0, outcome.errors
    assert outcome.summary.frames["lost"] == 0


@pytest.mark.parametrize("kind", ["Shared", "AsyncShared"])
def test_workers_that_are_killed_leave_their_frames_to_the_others(
    tmp_path: Path, kind: str
) -> None:
    """Replicas behind replicas, each killed now and then: nothing is lost, all is in order."""
    stages = {
        "src": {"kind": "Numbers", "count": 1200},
        "one": shared("src.n", kind, replicas=2),
        "two": shared("one.n", replicas=3),
        "out": write(tmp_path, "two.n"),
    }
    pipeline = load(tmp_path, stages, in_flight=6, restart={"delay_ms": 30})
    victims = ["two.1", "one.2", "two.3", "one.1", "two.2"]
    outcome = run_with_kills(pipeline, victims, every=150)
    assert outcome.exit_code == 0, outcome.errors
    assert_adds_up(msgspec.to_builtins(outcome.summary))
    assert outcome.summary.frames == {"read": 1200, "processed": 1200, "dropped": 0, "lost": 0}
    assert rows(tmp_path / "out.txt") == {0: list(range(1200))}
    assert sum(stage.restarts for stage in outcome.summary.stages.values()) == 5


def test_a_frame_that_kills_one_worker_after_the_other_is_set_aside(tmp_path: Path) -> None:
    stages = {
        "src": {"kind": "Numbers", "count": 100},
        "one": shared("src.n", replicas=2, die_at=20),
        "out": write(tmp_path, "one.n"),
    }
    outcome = load(tmp_path, stages, restart={"delay_ms": 1}).run_to_outcome(RunOptions())
    assert outcome.exit_code == 0, outcome.errors
    assert outcome.summary.frames == {"read": 100, "processed": 99, "dropped": 0, "lost": 1}
    assert rows(tmp_path / "out.txt") == {0: [n for n in range(100) if n != 20]}


def test_each_replica_is_a_process_of_its_name(tmp_path: Path) -> None:
    stages = {
        "src": {"kind": "Numbers", "count": 10**9},
        "one": shared("src.n", replicas=2),
        "out": write(tmp_path, "one.n"),
    }
    with started(write_pipeline(tmp_path, stages)) as running:
        running.wait_workers("src", "one.1", "one.2", "out")
        running.process.terminate()
        assert running.wait_end()[0] == 0


@pytest.mark.skipif(not is_installed("openvino"), reason="openvino is not installed")
def test_devices_share_frames_by_their_speed(tmp_path: Path) -> None:
    options = {"emulated:NPU": {"latency_ms": 4}, "emulated:NPU.1": {"latency_ms": 12}}
    devices = ["emulated:NPU", "emulated:NPU.1"]
    stages = inferring(tmp_path, 200, balance=devices, options=options, requests=2)
    code, _, err, summary = run(write_pipeline(tmp_path, stages, in_flight=6))
    assert code == 0, err
    assert_adds_up(summary)
    assert summary["frames"]["processed"] == 200
    actual = {stage: device["actual"] for stage, device in summary["devices"].items()}
    assert actual == {"detector.1": devices[0], "detector.2": devices[1]}
    fast, slow = (summary["stages"][f"detector.{n}"]["frames"] for n in (1, 2))
    assert fast > 1.5 * slow > 0
    sequences = [int(line.split()[0]) for line in (tmp_path / "out.txt").read_text().splitlines()]
    assert sequences == list(range(200))


def on_one_device(folder: Path, **heavy: Any) -> dict[str, dict[str, Any]]:
    """Two streams through two models on one emulated device, whose state processes share."""
    stages = {}
    for name, keys in (("light", {"priority": "high"}), ("heavy", {"priority": "low"})):
        options = {"state": str(folder / "state"), "latency_ms": 2}
        options |= heavy if name == "heavy" else {}
        one = inferring(folder, 60, device="emulated:NPU", options=options, requests=2, **keys)
        one["detector"]["inputs"] = {"tensor": f"{name}-frames.tensor"}
        one["out"] |= {"inputs": {"tensor": f"{name}.outputs"}, "path": str(folder / f"{name}.txt")}
        stages |= {f"{name}-{stage}": one[stage] for stage in ("frames", "out")}
        stages[name] = one["detector"]
    return stages


def limited(file: Path, count: int) -> Path:
    document = json.loads(file.read_text())
    file.write_text(json.dumps({**document, "devices": {"emulated:NPU": {"max_requests": count}}}))
    return file


@pytest.mark.skipif(not is_installed("openvino"), reason="openvino is not installed")
def test_stages_take_turns_at_a_limited_device(tmp_path: Path) -> None:
    stages = on_one_device(tmp_path, latency_ms=6)
    code, _, err, summary = run(limited(write_pipeline(tmp_path, stages), 1))
    assert code == 0, err
    assert_adds_up(summary)
    assert summary["frames"]["processed"] == 120


@pytest.mark.skipif(not is_installed("openvino"), reason="openvino is not installed")
def test_a_stage_that_dies_in_its_turn_gives_it_back(tmp_path: Path) -> None:
    stages = on_one_device(tmp_path, faults={"die_after": 12})
    file = write_pipeline(tmp_path, stages, restart=NEVER)
    code, _, err, summary = run(limited(file, 1))
    assert code == 1
    assert "SIGSEGV" in err
    assert "did not drain" not in err
    assert_adds_up(summary)

"""Workers that die while the run goes on: started again, and every frame counted (S7 S8)."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path
from typing import Any

import msgspec
import pytest

from edgert import Pipeline
from edgert.runtime import crew
from edgert.runtime.run import Outcome, Run, RunOptions
from tests.process.runs import NEVER, assert_adds_up, joined, load, run, write_pipeline

pytestmark = pytest.mark.process

COUNT = 900
SOON = {"delay_ms": 1}


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return tmp_path / "state"


def run_with_kills(pipeline: Pipeline, victims: list[str], every: int = 90) -> Outcome:
    """Kill one worker after the other, each when that many more frames have been read."""
    run = Run(pipeline.plan, RunOptions())
    run.start()
    due = every
    while run.is_running:
        run.step(0.005)
        if victims and run.progress().frames["read"] >= due:
            member = run._supervisor.members[victims[0]]
            if member.state == crew.READY:
                os.kill(member.pid, signal.SIGKILL)
                victims.pop(0)
                due = run.progress().frames["read"] + every
    return run.finish()


def rows_of(file: Path) -> list[list[int]]:
    lines = [line.split() for line in file.read_text().splitlines()]
    return [list(map(int, line)) for line in lines if line[1] != "end"]


@pytest.mark.parametrize(
    "shared",
    [{}, {"one": "w", "two": "w"}, {"src": "w", "out": "w"}],
    ids=["own", "middle", "ends"],
)
def test_a_killed_worker_of_any_kind_goes_on(tmp_path: Path, shared: dict[str, str]) -> None:
    stages = joined(tmp_path, COUNT)
    for stage, worker in shared.items():
        stages[stage]["worker"] = worker
    pipeline = load(tmp_path, stages, restart=SOON)
    victims = [worker.name for worker in pipeline.plan.workers]
    outcome = run_with_kills(pipeline, victims)
    assert not outcome.errors
    assert outcome.exit_code == 0
    summary = msgspec.to_builtins(outcome.summary)
    assert_adds_up(summary)
    assert outcome.summary.frames["read"] == COUNT
    assert all(stage.restarts == 1 for stage in outcome.summary.stages.values())
    for file, numbers in (("both.txt", (0, 2)), ("out.txt", (2,))):
        rows = rows_of(tmp_path / file)
        sequences = [row[1] for row in rows]
        # A sink of these writes before it answers: a kill in between has one frame written twice.
        assert sequences == sorted(sequences)
        assert len(sequences) - len(set(sequences)) <= 1
        assert len(set(sequences)) >= COUNT - outcome.summary.frames["lost"]
        for row in rows:
            assert row[2:] == [row[1] + more for more in numbers]


def test_frames_that_the_dead_had_are_tried_once_more(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Most kills lose nothing: what was in the dead worker's hands is whole in its ring."""
    pipeline = load(tmp_path, joined(tmp_path, COUNT), restart=SOON)
    outcome = run_with_kills(pipeline, ["one", "two", "one", "two"])
    assert outcome.summary.frames == {
        "read": COUNT, "processed": COUNT, "dropped": 0, "lost": 0
    }  # fmt: skip
    assert outcome.summary.stages["two"].restarts == 2
    words = "while it ran stage two: started again in 0.0 s (restart 1, allowed are 5 within 60 s)"
    assert words in caplog.text


@pytest.mark.parametrize("stage", ["src", "one", "out"])
def test_a_frame_that_kills_twice_is_set_aside(
    tmp_path: Path, state: Path, stage: str, caplog: pytest.LogCaptureFixture
) -> None:
    stages = joined(tmp_path, 100)
    stages[stage]["die_at"] = 20
    outcome = load(tmp_path, stages, restart=SOON).run_to_outcome(RunOptions())
    assert outcome.exit_code == 0, outcome.errors
    assert outcome.summary.frames == {"read": 100, "processed": 99, "dropped": 0, "lost": 1}
    assert outcome.summary.stages[stage].restarts == 2
    assert [row[1] for row in rows_of(tmp_path / "out.txt")] == [n for n in range(100) if n != 20]
    assert "frame 20 has ended its process twice: set aside, lost" in caplog.text
    kept = list(state.rglob("*.slot"))
    assert len(kept) == (stage != "src"), "a source has no input to keep"
    for file in kept:
        assert file.name.startswith(f"{stage}.n-src-20")
        assert file.stat().st_size == 2 * 4096


def test_an_exhausted_budget_ends_the_run(tmp_path: Path) -> None:
    """Every frame kills: after the restarts that are allowed, exit 1 and why."""
    stages = joined(tmp_path, 100)
    stages["one"] |= {"raise_from": 10}
    file = write_pipeline(tmp_path, stages, restart={**SOON, "max_restarts": 2})
    code, _, err, summary = run(file)
    assert code == 1
    said = "it was started again 2 times, allowed are 2 within 60 s"
    assert said in err.splitlines()[-1]
    assert said in summary["error"]
    assert summary["stages"]["one"]["restarts"] == 2
    assert_adds_up(summary)


def test_a_worker_that_cannot_boot_is_not_started_again(tmp_path: Path) -> None:
    stages = joined(tmp_path, COUNT)
    stages["one"]["fail_open"] = "user"
    code, _, err, summary = run(write_pipeline(tmp_path, stages, restart=SOON))
    assert code == 2
    assert err.strip().splitlines() == ["stage 'one': does not open. Open it."]
    assert summary["stages"]["one"]["restarts"] == 0


def test_a_hung_worker_is_killed_and_started_again(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Its stack is logged; the frame is tried again, and set aside when it hangs again."""
    stages = joined(tmp_path, 60)
    stages["one"] |= {"hang_at": 30}
    outcome = load(tmp_path, stages, restart={**SOON, "hang_s": 0.4}).run_to_outcome(RunOptions())
    assert outcome.exit_code == 0, outcome.errors
    assert outcome.summary.frames["lost"] == 1
    assert outcome.summary.stages["one"].restarts == 2
    assert "stage 'one' has been at one frame for" in caplog.text
    assert 'kinds.py", line' in caplog.text, "the stack is missing"
    assert "in process" in caplog.text


def test_a_frozen_worker_is_killed_and_started_again(tmp_path: Path) -> None:
    """Stopped while it has nothing to do, it gives no sign of life."""
    pipeline = load(tmp_path, joined(tmp_path, COUNT), restart={**SOON, "hang_s": 1.5})
    run = Run(pipeline.plan, RunOptions())
    run.start()
    frozen = 0
    while run.is_running:
        run.step(0.01)
        if not frozen and run.progress().frames["read"] > 100:
            frozen = run._supervisor.members["two"].pid
            os.kill(frozen, signal.SIGSTOP)
    outcome = run.finish()
    assert outcome.exit_code == 0, outcome.errors
    assert outcome.summary.stages["two"].restarts == 1
    assert outcome.summary.frames == {"read": COUNT, "processed": COUNT, "dropped": 0, "lost": 0}


def test_the_policy_can_say_never(tmp_path: Path) -> None:
    pipeline = load(tmp_path, joined(tmp_path, COUNT), restart=NEVER)
    outcome = run_with_kills(pipeline, ["one"])
    assert outcome.exit_code == 1
    assert "was ended by SIGKILL" in str(outcome.errors[0])


def test_a_stage_may_have_its_own_policy(tmp_path: Path) -> None:
    stages = joined(tmp_path, COUNT)
    stages["one"]["restart"] = NEVER
    plan = load(tmp_path, stages, restart={"delay_ms": 7}).plan
    assert plan.worker_of("one").restart.policy == "never"
    assert plan.worker_of("one").restart.delay_ms == 7
    assert plan.worker_of("two").restart.policy == "on-failure"


@pytest.mark.parametrize("wait", [True, False], ids=["drained", "at once"])
def test_a_run_is_stopped_while_a_worker_is_down(tmp_path: Path, *, wait: bool) -> None:
    pipeline = load(tmp_path, joined(tmp_path, 10**9), restart={"delay_ms": 500})
    run = Run(pipeline.plan, RunOptions(stop_timeout_s=20))
    run.start()
    killed = stopped = False
    while run.is_running:
        run.step(0.01)
        member = run._supervisor.members["one"]
        if not killed and run.progress().frames["read"] > 100:
            os.kill(member.pid, signal.SIGKILL)
            killed = True
        elif killed and not stopped and member.state == crew.WAITING:
            stopped = True
            run.stop()
            if not wait:
                run.stop()
    outcome = run.finish()
    assert_adds_up(msgspec.to_builtins(outcome.summary))
    assert outcome.exit_code == (0 if wait else 1), outcome.errors


def results_with_kills(folder: Path, victim: str) -> list[Any]:
    stages = {
        "src": {"kind": "Numbers", "count": 400},
        "found": {"kind": "Found", "inputs": {"n": "src.n"}},
        "out": {
            "kind": "sink.jsonl",
            "inputs": {"detections": "found.detections"},
            "path": str(folder / "out.jsonl"),
        },
    }
    pipeline = load(folder, stages, restart=SOON)
    outcome = run_with_kills(pipeline, [victim] * 3, every=60)
    assert outcome.exit_code == 0, outcome.errors
    assert outcome.summary.frames["read"] == 400
    return [json.loads(line) for line in (folder / "out.jsonl").read_text().splitlines()]


def test_a_file_of_results_goes_on_in_whole_lines(tmp_path: Path) -> None:
    lines = results_with_kills(tmp_path, "out")
    assert [line["frame"] for line in lines] == list(range(400))

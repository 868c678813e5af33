"""Models that have to show what they do before they take over (``swap:``); no frame is lost."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from edgert import Pipeline
from edgert.backends.registry import is_installed
from edgert.control.requests import Done, Drain, GetStatus, Refused, Reload, Set, StatusIs
from edgert.errors import PipelineError
from edgert.runtime.run import Outcome
from tests import models
from tests.process.runs import started, wait_for, write_pipeline
from tests.process.tensors import KINDS, inferring
from tests.process.test_control import ENDLESS, Controlled, controlled, ctl

pytestmark = [
    pytest.mark.process,
    pytest.mark.skipif(not is_installed("onnxruntime"), reason="onnxruntime is not installed"),
]

CPU = "onnxruntime:CPU"
NPU = "emulated:NPU"
LOOSE = 1000  # times: models of a microsecond are timed by how threads wake up


class File:
    """A pipeline file and what is done to it."""

    def __init__(self, folder: Path, **infer: Any) -> None:
        self.folder = folder
        stages = inferring(folder, ENDLESS, **infer)
        self.path = write_pipeline(folder, stages)

    def change(self, change: Callable[[dict[str, Any]], object]) -> None:
        document = json.loads(self.path.read_text())
        change(document)
        self.path.write_text(json.dumps(document))

    def stage(self, name: str, **keys: Any) -> None:
        self.change(lambda d: d["stages"].setdefault(name, {}).update(keys))

    def load(self) -> Pipeline:
        return Pipeline.load(self.path)


def status(it: Controlled) -> dict[str, Any]:
    (answer,) = it.ask(GetStatus())
    assert isinstance(answer, StatusIs)
    return answer.status


def pid(it: Controlled, stage: str = "detector") -> int:
    found: int = status(it)["stages"][stage]["pid"]
    return found


def refused(answer: Any) -> tuple[str, str, str]:
    assert isinstance(answer, Refused), answer
    (fault,) = answer.faults
    return fault.place, fault.fault, fault.mend


def drained(it: Controlled) -> Outcome:
    at = it.run.progress().frames["processed"]
    it.until(lambda: it.run.progress().frames["processed"] > at + 20)
    it.ask(Drain())
    outcome = it.finish()
    assert outcome.exit_code == 0, outcome.errors
    assert outcome.summary.frames["lost"] == outcome.summary.frames["dropped"] == 0
    return outcome


def factors(folder: Path, outcome: Outcome) -> list[float]:
    """Return by what each frame was multiplied; every frame is there, and once."""
    lines = [line.split() for line in (folder / "out.txt").read_text().splitlines()]
    assert [int(number) for number, _ in lines] == list(range(outcome.summary.frames["read"]))
    return [float(found) / int(number) for number, found in lines if int(number)]


def test_a_model_that_agrees_takes_over_and_another_is_kept_back(tmp_path: Path) -> None:
    bounds = {"frames": 20, "min_agreement": 0.95, "max_p95_ratio": LOOSE}
    file = File(tmp_path, device=CPU, swap=bounds)
    triple = models.tripling(tmp_path / "triple.onnx")
    double = models.shifting(tmp_path / "double.onnx", 2, 0)
    with controlled(file.load()) as it:
        before = pid(it)
        (answer,) = it.ask(Set("detector.model", str(triple)))
        place, fault, mend = refused(answer)
        assert place == "stage 'detector', swap"
        assert fault.startswith(f"model '{triple}' is kept back: on 20 frames its p95 is ")
        assert fault.endswith(
            " ms of the one that runs, and their agreement is 0.923 (outputs); "
            "at least 0.95 is wanted (min_agreement)"
        )
        assert mend == (
            "The one that runs goes on; give a model that keeps to the bounds, or other bounds"
        )
        assert pid(it) == before
        swap = status(it)["swaps"]["detector"]
        assert (swap["state"], swap["frames"], swap["of"]) == ("kept back", 20, 20)
        assert (swap["model"], swap["agreement"]) == (str(triple), 0.9231)
        assert swap["said"] == fault
        (answer,) = it.ask(Set("detector.model", str(double)))
        assert isinstance(answer, Done), answer
        assert answer.said.startswith(f"stage 'detector', swap: model '{double}' has passed: on 20")
        assert "their agreement is 1.000 (outputs); worker 'detector' is followed" in answer.said
        assert status(it)["swaps"]["detector"]["state"] == "passed"
        assert pid(it) != before
        now = pid(it)
        file.stage("detector", model=str(double))
        (answer,) = it.ask(Set("detector.swap.min_agreement", "0.9"))
        assert answer == Done("stage 'detector' goes on with other options")
        assert pid(it) == now  # what is asked of heirs changes nobody
        file.stage("detector", model=str(triple), swap={"frames": 5, "min_agreement": 0.9})
        (answer,) = it.ask(Reload())
        assert isinstance(answer, Done), answer
        outcome = drained(it)
    assert set(factors(tmp_path, outcome)) == {2, 3}


def emulated(**more: Any) -> dict[str, Any]:
    return {"latency_ms": 4, "outputs": "computed", **more}


FAULTY: dict[str, tuple[dict[str, Any], str]] = {
    "slow": (emulated(latency_ms=250), "at most 2 times is allowed (max_p95_ratio)"),
    "noisy": (
        emulated(latency_ms=1, faults={"noise": 1e6}),
        "at least 0.95 is wanted (min_agreement)",
    ),
}


@pytest.mark.parametrize("how", FAULTY)
def test_a_device_that_does_not_keep_to_the_bounds_is_kept_back(tmp_path: Path, how: str) -> None:
    bounds = {"frames": 3, "min_agreement": 0.95, "max_p95_ratio": 2}
    options, said = FAULTY[how]
    file = File(tmp_path, device=NPU, options=emulated(), requests=2, swap=bounds)
    file.change(lambda d: d.update(devices={NPU: {"max_requests": 1}}))
    with controlled(file.load()) as it:
        before = pid(it)
        file.stage("detector", options=options)
        (answer,) = it.ask(Reload())
        assert refused(answer)[1].endswith(said)
        assert answer.exit_code == 2
        assert pid(it) == before
        file.stage("detector", options=emulated(seed=1), swap={"min_agreement": 0.95, "frames": 4})
        (answer,) = it.ask(Reload())
        assert isinstance(answer, Done), answer
        drained(it)


def test_a_candidate_that_dies_or_hangs_changes_nothing(tmp_path: Path) -> None:
    file = File(tmp_path, device=NPU, options=emulated(), requests=1, swap={"frames": 20})
    file.stage("detector", restart={"hang_s": 1})
    with controlled(file.load()) as it:
        before = pid(it)
        file.stage("detector", options=emulated(faults={"die_after": 6}))
        (answer,) = it.ask(Reload())
        place, fault, mend = refused(answer)
        assert place == "stage 'detector', swap"
        assert " is kept back after 5 frames: worker 'detector' (process " in fault
        assert fault.endswith(
            "was ended by SIGSEGV (a native library crashed) while it ran stage detector"
        )
        assert mend == "See the lines above; it had no frame of the run. The one that runs goes on"
        assert answer.exit_code == 1
        file.stage("detector", options=emulated(faults={"hang_after": 6}))
        (answer,) = it.ask(Reload())
        assert refused(answer)[1].endswith("is kept back: it has been at one frame for 1 s")
        file.stage("detector", options=emulated(faults={"error_after": 6}))
        (answer,) = it.ask(Reload())
        assert "is kept back after 5 frames: stage 'detector': emulated:NPU" in refused(answer)[1]
        assert pid(it) == before
        drained(it)


def test_frames_that_do_not_come_end_the_trial(tmp_path: Path) -> None:
    bounds = {"frames": 10_000, "timeout_s": 0.3}
    file = File(tmp_path, device=NPU, options=emulated(), swap=bounds)
    with controlled(file.load()) as it:
        file.stage("detector", options=emulated(seed=1))
        (answer,) = it.ask(Reload())
        _, fault, mend = refused(answer)
        assert fault.endswith("of 10000 frames within 0.3 s (timeout_s)")
        assert mend == "The one that runs goes on; look whether frames come, and try again"
        assert answer.exit_code == 1
        drained(it)


def test_a_live_source_drops_what_it_must_and_all_is_counted(tmp_path: Path) -> None:
    file = File(tmp_path, device=NPU, options=emulated(), swap={"frames": 10})
    file.stage("frames", kind=f"{KINDS}LiveFrames", every_ms=6)
    with controlled(file.load()) as it:
        file.stage("detector", options=emulated(latency_ms=25))
        (answer,) = it.ask(Reload())
        assert isinstance(answer, Done), answer
        it.ask(Drain())
        outcome = it.finish()
    frames = outcome.summary.frames
    assert outcome.exit_code == 0, outcome.errors
    assert frames["lost"] == 0
    assert frames["read"] == frames["processed"] + frames["dropped"]


def finding(folder: Path, **infer: Any) -> File:
    file = File(folder, device=CPU, **infer)
    out = {"kind": "sink.jsonl", "path": str(folder / "out.jsonl")}
    file.stage("detector", worker="both")
    file.stage("people", kind=f"{KINDS}Find", inputs={"raw": "detector.outputs"}, worker="both")
    file.stage("found", inputs={"detections": "people.detections"}, **out)
    return file


def test_boxes_are_compared_where_they_are_made(tmp_path: Path) -> None:
    file = finding(tmp_path, swap={"frames": 10, "min_agreement": 0.9})
    near = models.shifting(tmp_path / "near.onnx", 2, 0.1)
    aside = models.shifting(tmp_path / "aside.onnx", 2, 1)
    none = models.shifting(tmp_path / "none.onnx", -1, -1)
    also = models.shifting(tmp_path / "also.onnx", -2, -1)
    with controlled(file.load()) as it:
        for model, agreement in ((aside, "0.818"), (none, "0.000")):
            (answer,) = it.ask(Set("detector.model", str(model)))
            assert f"their agreement is {agreement} (boxes)" in refused(answer)[1]
        (answer,) = it.ask(Set("detector.model", str(near)))
        assert isinstance(answer, Done), answer
        assert status(it)["swaps"]["detector"]["agreement"] == pytest.approx(0.98, abs=1e-3)
        file.stage("detector", model=str(near), options={"onnxruntime": {}})
        file.stage("people", label="other")
        (answer,) = it.ask(Reload())
        assert "their agreement is 0.000 (boxes)" in refused(answer)[1]  # another name for it
        file.stage("detector", model=str(none), swap={"frames": 3})
        (answer,) = it.ask(Reload())
        assert isinstance(answer, Done), answer
        file.stage("detector", model=str(also), swap={"frames": 3, "min_agreement": 0.9})
        (answer,) = it.ask(Reload())
        assert refused(answer)[1].endswith(
            "and neither of them gives anything to compare (boxes); so min_agreement cannot be told"
        )
        drained(it)


def test_replicas_change_together_or_not_at_all(tmp_path: Path) -> None:
    file = File(tmp_path, device=CPU, replicas=2, swap={"frames": 5, "min_agreement": 0.95})
    triple = models.tripling(tmp_path / "triple.onnx")
    double = models.shifting(tmp_path / "double.onnx", 2, 0)
    names = ("detector.1", "detector.2")
    with controlled(file.load()) as it:
        before = [pid(it, name) for name in names]
        (answer,) = it.ask(Set("detector.model", str(triple)))
        assert refused(answer)[0] == "stage 'detector.1', swap"
        assert [pid(it, name) for name in names] == before
        (answer,) = it.ask(Set("detector.model", str(double)))
        assert isinstance(answer, Done), answer
        assert {swap["state"] for swap in status(it)["swaps"].values()} == {"passed"}
        assert not {pid(it, name) for name in names} & {*before}
        file.stage("detector", model=str(triple), swap={"frames": 10_000})
        it.run.reload()
        it.until(lambda: status(it)["swaps"]["detector.1"]["state"] == "trying")
        os.kill(it.run._supervisor.team.heirs["detector.2"].pid, signal.SIGKILL)
        it.until(lambda: it.run.progress().said)
        assert "worker 'detector.2'" in it.run.progress().said
        assert "it had no frame of the run" in it.run.progress().said
        drained(it)


def test_the_one_that_runs_may_die_or_drain_meanwhile(tmp_path: Path) -> None:
    file = File(tmp_path, device=NPU, options=emulated(), swap={"frames": 10_000})
    with controlled(file.load()) as it:
        file.stage("detector", options=emulated(seed=1))
        it.run.reload()

        def trying() -> bool:
            return status(it)["swaps"].get("detector", {}).get("frames", 0) > 3

        it.until(trying)
        os.kill(pid(it), signal.SIGKILL)
        it.until(lambda: it.run.progress().said)
        assert "the worker whose place it takes has ended by itself" in it.run.progress().said
        it.until(lambda: status(it)["stages"]["detector"]["state"] == "ready")
        at = it.run.progress().frames["processed"]
        it.until(lambda: it.run.progress().frames["processed"] > at + 20)
        it.run.reload()
        it.until(lambda: it.run.progress().said == "")
        it.until(trying)
        it.run.stop()
        outcome = it.finish()
    assert outcome.exit_code == 0, outcome.errors
    assert outcome.summary.frames["lost"] == outcome.summary.frames["dropped"] == 0
    assert set(factors(tmp_path, outcome)) == {2}


def test_what_cannot_be_tried_is_found_by_check(tmp_path: Path) -> None:
    file = File(tmp_path, device=CPU, worker="all", swap={"frames": 0})
    file.stage("frames", worker="all")
    with pytest.raises(PipelineError) as raised:
        file.load()
    assert [fault.place for fault in raised.value.faults] == ["stage 'detector', key 'swap.frames'"]
    file.stage("detector", swap={})
    with pytest.raises(PipelineError) as raised:
        file.load()
    (fault,) = raised.value.faults
    assert (fault.place, fault.fault, fault.mend) == (
        "stage 'detector', key 'swap'",
        "its worker also runs 'frames', which cannot be open twice, so nothing can be tried "
        "beside it",
        "Remove 'worker', so that it has one of its own, or remove 'swap'",
    )
    file.stage("detector", batch={"max_size": 2})
    with pytest.raises(PipelineError) as raised:
        file.load()
    (fault,) = raised.value.faults
    assert fault.fault == "'swap' tries frame by frame, and 'batch' infers several together"
    assert fault.mend == "Remove one of them"


def test_the_command_line_waits_as_long_as_a_trial_takes(tmp_path: Path) -> None:
    bounds = {"frames": 30, "min_agreement": 0.95}
    file = File(tmp_path, device=CPU, swap=bounds)
    triple = models.tripling(tmp_path / "triple.onnx")
    name = file.load().plan.name
    with started(file.path) as run:
        wait_for(lambda: ctl(name)[1].startswith(f"{name}: running"), "running")
        code, out, err = ctl(name, "set", "detector.model", str(triple))
        assert (code, out) == (2, "")
        assert err.startswith(f"stage 'detector', swap: model '{triple}' is kept back: on 30")
        code, out, _ = ctl(name, "status", "--json")
        assert json.loads(out)["swaps"]["detector"]["state"] == "kept back"
        assert f"stage 'detector', swap: model '{triple}' is kept back" in ctl(name)[1]
        assert ctl(name, "drain")[0] == 0
        assert run.wait_end()[0] == 0

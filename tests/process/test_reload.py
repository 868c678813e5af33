"""Runs that are changed while they go on: restarts, settings and reloads; no frame is lost."""

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
from edgert.control.requests import Done, Drain, GetStatus, Refused, Reload, Restart, Set, StatusIs
from tests import models
from tests.process.runs import (
    NEVER,
    NoModels,
    assert_adds_up,
    joined,
    started,
    wait_for,
    write_pipeline,
)
from tests.process.tensors import inferring
from tests.process.test_control import ENDLESS, Controlled, chain, controlled, ctl

pytestmark = pytest.mark.process

Stages = dict[str, dict[str, Any]]


class File:
    """A pipeline file, and the run of what stood in it first."""

    def __init__(self, folder: Path, stages: Stages, **more: Any) -> None:
        self.path = write_pipeline(folder, stages, **more)
        self.pipeline = Pipeline.load(self.path, models=NoModels())

    def change(self, change: Callable[[dict[str, Any]], object]) -> None:
        document = json.loads(self.path.read_text())
        change(document)
        self.path.write_text(json.dumps(document))


def frames(it: Controlled) -> int:
    return it.run.progress().frames["processed"]


def written(folder: Path) -> list[int]:
    lines = map(str.split, (folder / "out.txt").read_text().splitlines())
    return [int(line[-1]) for line in lines if line[-1] != "end"]


def pids(it: Controlled) -> dict[str, int]:
    (answer,) = it.ask(GetStatus())
    assert isinstance(answer, StatusIs)
    return {name: stage["pid"] for name, stage in answer.status["stages"].items()}


def test_every_stage_is_started_again_and_no_frame_is_lost(tmp_path: Path) -> None:
    file = File(tmp_path, joined(tmp_path, ENDLESS, one="Shared"), restart=NEVER)
    with controlled(file.pipeline) as it:
        before = pids(it)
        for name in before:
            (answer,) = it.ask(Restart(name))
            assert isinstance(answer, Done), answer
            assert answer.said.startswith(f"stage '{name}' runs again, as process ")
        after = pids(it)
        it.ask(Drain())
        outcome = it.finish()
    assert outcome.exit_code == 0, outcome.errors
    assert not set(before.values()) & set(after.values())
    assert outcome.summary.frames["lost"] == outcome.summary.frames["dropped"] == 0
    assert {stage.restarts for stage in outcome.summary.stages.values()} == {1}
    assert written(tmp_path) == [n + 2 for n in range(outcome.summary.frames["read"])]


def test_a_live_option_is_set_between_two_frames(tmp_path: Path) -> None:
    with controlled(File(tmp_path, chain(tmp_path)).pipeline) as it:
        before = pids(it)
        (answer,) = it.ask(Set("one.filter", f"[{', '.join(map(str, range(500, 700)))}]"))
        assert answer == Done("stage 'one' goes on with other options")
        it.until(lambda: frames(it) > 800)
        assert pids(it) == before
        (answer,) = it.ask(Set("one.wait_ms", "0"))
        assert answer == Done("stage 'one' goes on with other options")
        (answer,) = it.ask(Restart("one"))  # which keeps both
        (answer,) = it.ask(GetStatus())
        assert isinstance(answer, StatusIs)
        assert answer.status["stages"]["one"]["filtered"] == 200
        (answer,) = it.ask(Reload())  # back to what the file says
        assert answer == Done("stage 'one' goes on with other options")
        it.ask(Drain())
        outcome = it.finish()
    assert outcome.exit_code == 0
    assert outcome.summary.frames["lost"] == 0


REFUSED = {
    ("one.wait_ms", "soon"): "'soon' is not a number",
    ("one.lose", "[1]"): "key 'lose' needs a reload",
    ("out.path", "elsewhere.txt"): "key 'path' needs a reload",
    ("one.kind", "x"): "",
    ("nobody.x", "1"): "there is no stage 'nobody'",
    ("one", "1"): "",
    ("one.wait_ms", "!!python/object:os.system {}"): "",
}


def test_what_cannot_be_set_is_refused_and_changes_nothing(tmp_path: Path) -> None:
    with controlled(File(tmp_path, chain(tmp_path)).pipeline) as it:
        before = pids(it)
        (answer,) = it.ask(Restart("won"))
        assert isinstance(answer, Refused)
        fault = answer.faults[0]
        assert (fault.place, fault.fault) == ("stage 'won'", "is not in this pipeline")
        assert fault.mend == "Did you mean 'one'? Its stages: src, one, out"
        for (key, value), said in REFUSED.items():
            (answer,) = it.ask(Set(key, value))
            assert isinstance(answer, Refused), (key, answer)
            assert answer.exit_code == 2
            assert said in f"{answer.faults[0].place} {answer.faults[0].fault}", answer
        assert pids(it) == before
        it.ask(Drain())
        assert it.finish().exit_code == 0


def test_a_reload_restarts_what_has_changed_alone(tmp_path: Path) -> None:
    file = File(tmp_path, joined(tmp_path, ENDLESS, one="Shared"))
    with controlled(file.pipeline) as it:
        before = pids(it)
        (answer,) = it.ask(Reload())
        assert answer == Done("nothing has changed")
        file.change(lambda d: d["stages"]["one"].update(lose=[10**9]))
        file.change(lambda d: d["stages"]["src"].update(lose=[10**9]))
        (answer,) = it.ask(Reload())
        assert answer == Done(
            "worker 'src' is followed by another; worker 'one' is followed by another"
        )
        after = pids(it)
        assert {name for name in before if before[name] != after[name]} == {"src", "one"}
        at = frames(it)
        it.until(lambda: frames(it) > at + 50)
        it.ask(Drain())
        outcome = it.finish()
    assert outcome.exit_code == 0
    assert outcome.summary.frames["lost"] == outcome.summary.frames["dropped"] == 0
    assert written(tmp_path) == [n + 2 for n in range(outcome.summary.frames["read"])]


def test_a_bad_file_keeps_the_run_and_says_every_fault(tmp_path: Path) -> None:
    file = File(tmp_path, chain(tmp_path))
    with controlled(file.pipeline) as it:
        before = pids(it)
        file.change(lambda d: d["stages"]["one"].update(wait_ms="soon", colour="red"))
        (answer,) = it.ask(Reload())
        assert isinstance(answer, Refused)
        assert answer.exit_code == 2
        told = [f"{fault.place}: {fault.fault}" for fault in answer.faults]
        assert len(told) == 2
        assert all(str(file.path) in place for place in told)
        file.path.write_text("stages: [")
        (answer,) = it.ask(Reload())
        assert isinstance(answer, Refused)
        file.path.unlink()
        (answer,) = it.ask(Reload())
        assert isinstance(answer, Refused)
        assert pids(it) == before
        it.ask(Drain())
        assert it.finish().exit_code == 0


def test_a_change_of_the_graph_is_refused_by_name(tmp_path: Path) -> None:
    file = File(tmp_path, chain(tmp_path))
    with controlled(file.pipeline) as it:
        file.change(
            lambda d: d["stages"].update(
                more={"kind": "tests.process.kinds:Write", "inputs": {"n": "src.n"}, "path": "x"}
            )
        )
        (answer,) = it.ask(Reload())
        assert isinstance(answer, Refused)
        assert [fault.fault for fault in answer.faults] == ["stage 'more' is new"]
        file.change(lambda d: (d["stages"].pop("more"), d["limits"].update(in_flight=7)))
        (answer,) = it.ask(Reload())
        assert isinstance(answer, Refused)
        assert "'in_flight' differs" in [fault.fault for fault in answer.faults]
        it.ask(Drain())
        assert it.finish().exit_code == 0


@pytest.mark.parametrize(("kind", "how"), [("Shared", "user"), ("Step", "bug")])
def test_what_does_not_open_is_rolled_back_and_no_frame_is_lost(
    tmp_path: Path, kind: str, how: str
) -> None:
    stages = chain(tmp_path)
    stages["one"]["kind"] = kind
    file = File(tmp_path, stages)
    with controlled(file.pipeline) as it:
        before = pids(it)
        (answer,) = it.ask(Set("one.fail_open", how))
        assert isinstance(answer, Refused)
        assert answer.exit_code == (2 if how == "user" else 1)
        after = pids(it)
        assert (before["one"] == after["one"]) == (kind == "Shared")  # the first went on beside it
        at = frames(it)
        it.until(lambda: frames(it) > at + 50)
        (answer,) = it.ask(Reload())
        assert answer == Done("nothing has changed")
        it.ask(Drain())
        outcome = it.finish()
    assert outcome.exit_code == 0
    assert outcome.summary.frames["lost"] == 0
    assert written(tmp_path) == [n + 1 for n in range(outcome.summary.frames["read"])]


def test_a_reload_of_which_one_part_fails_changes_nothing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    stages = joined(tmp_path, ENDLESS, one="Shared")
    stages["three"] = {"kind": "Step", "inputs": {"n": "two.n"}}
    stages["out"]["inputs"] = {"n": "three.n"}
    file = File(tmp_path, stages)
    with controlled(file.pipeline) as it:
        before = pids(it)
        good = file.path.read_text()
        for name in ("src", "one", "three"):  # the first and the last cannot be open twice
            file.change(lambda d, name=name: d["stages"][name].update(lose=[10**9]))
        file.change(lambda d: d["stages"]["three"].update(fail_open="user"))
        (answer,) = it.ask(Reload())
        assert isinstance(answer, Refused)
        assert [(f.place, f.fault, f.mend) for f in answer.faults] == [
            ("stage 'three'", "does not open", "Open it")
        ]
        assert "not changed, and goes on as before: stage 'three': does not open" in caplog.text
        after = pids(it)
        assert {name for name in before if before[name] != after[name]} == {"src", "three"}
        file.path.write_text(good)
        (answer,) = it.ask(Reload())
        assert answer == Done("nothing has changed")
        at = frames(it)
        it.until(lambda: frames(it) > at + 50)
        it.ask(Drain())
        outcome = it.finish()
    assert outcome.exit_code == 0, outcome.errors
    assert outcome.summary.frames["lost"] == outcome.summary.frames["dropped"] == 0
    assert written(tmp_path) == [n + 3 for n in range(outcome.summary.frames["read"])]


def test_what_cannot_go_back_is_told(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    once = tmp_path / "opened"
    stages = joined(tmp_path, ENDLESS, one="Shared")
    stages["three"] = {"kind": "Step", "inputs": {"n": "two.n"}}
    stages["four"] = {"kind": "OpensOnce", "inputs": {"n": "three.n"}, "once": str(once)}
    stages["out"]["inputs"] = {"n": "four.n"}
    file = File(tmp_path, stages)
    with controlled(file.pipeline) as it:
        file.change(lambda d: d["stages"]["four"].pop("once"))
        file.change(lambda d: d["stages"]["three"].update(fail_open="user"))
        (answer,) = it.ask(Reload())
        assert isinstance(answer, Refused)
        assert [fault.fault for fault in answer.faults] == [
            "does not open",
            "four could not go back, and run what is new",
        ]
        assert "changed in part: stage 'three': does not open" in caplog.text
        at = frames(it)
        it.until(lambda: frames(it) > at + 50)
        it.ask(Drain())
        outcome = it.finish()
    assert outcome.exit_code == 0, outcome.errors
    assert outcome.summary.frames["lost"] == 0


def test_a_replica_that_is_away_comes_back_with_the_new_plan(tmp_path: Path) -> None:
    stages = chain(tmp_path)
    stages["one"] |= {"kind": "Shared", "replicas": 2, "bad_worker": "one.2", "wait_ms": 0}
    file = File(tmp_path, stages, restart={"delay_ms": 1, "max_restarts": 0})
    with controlled(file.pipeline) as it:
        members = it.run._supervisor.members
        it.until(lambda: members["one.2"].state == "away")
        file.change(lambda d: d["stages"]["one"].pop("bad_worker"))
        (answer,) = it.ask(Reload())
        assert answer == Done(
            "worker 'one.1' is followed by another; worker 'one.2' is followed by another"
        )
        it.until(lambda: members["one.2"].state == "ready")
        it.ask(Drain())
        outcome = it.finish()
    assert outcome.exit_code == 0, outcome.errors
    assert outcome.summary.frames["lost"] == 0
    assert written(tmp_path) == [n + 1 for n in range(outcome.summary.frames["read"])]


def test_a_run_can_be_drained_while_it_is_changed(tmp_path: Path) -> None:
    file = File(tmp_path, joined(tmp_path, ENDLESS, one="Shared"))
    with controlled(file.pipeline) as it:
        for name in ("one", "src"):
            file.change(lambda d, name=name: d["stages"][name].update(lose=[10**9]))
        it.run.reload()
        it.run.step(0.01)
        it.until(lambda: it.run._supervisor.team.heirs)
        it.run.stop()
        outcome = it.finish()
    assert outcome.exit_code == 0, outcome.errors
    assert outcome.summary.frames["lost"] == 0


def test_sighup_reloads_and_the_command_line_does(tmp_path: Path) -> None:
    file = File(tmp_path, chain(tmp_path))
    name = file.pipeline.plan.name
    with started(file.path) as run:
        first = run.wait_workers("src", "one", "out")
        wait_for(lambda: ctl(name)[1].startswith(f"{name}: running"), "running")
        file.change(lambda d: d["stages"]["one"].update(lose=[10**9]))
        os.kill(run.pid, signal.SIGHUP)
        wait_for(lambda: run.wait_workers("one")["one"] != first["one"], "another worker")
        unchanged = (0, "nothing has changed\n", "")
        wait_for(lambda: ctl(name, "reload") == unchanged, "the first reload's end")
        code, out, _ = ctl(name, "set", "one.wait_ms", "2", "--json")
        assert (code, json.loads(out)["done"]) == (0, "stage 'one' goes on with other options")
        code, _, err = ctl(name, "restart", "two")
        assert (code, err) == (
            2, "stage 'two': is not in this pipeline. Its stages: src, one, out.\n",
        )  # fmt: skip
        assert ctl(name, "drain")[0] == 0
        code, _, _ = run.wait_end()
        assert code == 0
        assert_adds_up(run.summary())
        assert run.summary()["frames"]["lost"] == 0


@pytest.mark.skipif(not is_installed("openvino"), reason="openvino is not installed")
def test_a_model_is_swapped_and_no_frame_is_lost(tmp_path: Path) -> None:
    stages = inferring(tmp_path, ENDLESS, device="openvino:CPU")
    pipeline = Pipeline.load(write_pipeline(tmp_path, stages))
    triple = models.tripling(tmp_path / "tripling.onnx")
    other = models.doubling(tmp_path / "other.onnx", (2, 4))
    (tmp_path / "broken.onnx").write_bytes(b"no model")
    with controlled(pipeline) as it:
        before = pids(it)
        for file in (other, tmp_path / "broken.onnx", tmp_path / "none.onnx"):
            (answer,) = it.ask(Set("detector.model", str(file)))
            assert isinstance(answer, Refused), file
            assert answer.exit_code == 2
        assert pids(it) == before
        (answer,) = it.ask(Set("detector.model", str(triple)))
        assert isinstance(answer, Done), answer
        assert "worker 'detector' is followed by another" in answer.said
        at = frames(it)
        it.until(lambda: frames(it) > at + 20)
        it.ask(Drain())
        outcome = it.finish()
    assert outcome.exit_code == 0, outcome.errors
    assert outcome.summary.frames["lost"] == outcome.summary.frames["dropped"] == 0
    lines = [line.split() for line in (tmp_path / "out.txt").read_text().splitlines()]
    assert [int(number) for number, _ in lines] == list(range(outcome.summary.frames["read"]))
    factors = [float(found) / int(number) for number, found in lines if int(number)]
    assert factors == sorted(factors)
    assert set(factors) == {2, 3}

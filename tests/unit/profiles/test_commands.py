"""``--profile`` of plan, run, check and devices, in real processes."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from edgert.cli.main import exit_code_of
from edgert.cli.profiles import LIST_SCHEMA, profile_json, profile_text
from edgert.profiles.find import SHIPPED
from edgert.profiles.load import load_profile
from edgert.profiles.presence import Presence
from edgert.profiles.schema import schema
from tests.conftest import Edgert

KINDS = '''\
from edgert.options import option
from edgert.stages.base import Source, Stage, StageOptions
from edgert.tensor import FrameHeader, PortSpec, TensorSpec

class Two(Source):
    """Gives two frames."""
    outputs = {"n": "numbers"}
    @classmethod
    def plan(cls, options, inputs, context):
        return {"n": PortSpec("numbers", {"n": TensorSpec("i64", (1,))})}
    def open(self):
        self.left = 2
    def grab(self):
        self.left -= 1
        return FrameHeader(width=1, height=1) if self.left >= 0 else None
    def write(self, outputs):
        outputs["n"].tensor("n")[:] = 1

class AskOptions(StageOptions):
    device: list[str] = option(default=["CPU"], description="Devices.")
    requests: int = option(default=1, description="Requests.")

class Ask(Stage):
    """Says what it was given."""
    inputs = {"n": "numbers"}
    options = AskOptions
    uses_all_cores = True
    def process(self, inputs, outputs):
        self.context.log.warning("given %s %s", self.settings.device, self.settings.requests)
'''
PIPELINE = """\
version: 1
name: {name}
stages:
  camera: {{kind: "asking:Two"}}
  ask: {{kind: "asking:Ask", inputs: {{n: camera.n}}, cores: p-cores}}
  shut: {{kind: "asking:Ask", inputs: {{n: camera.n}}, device: [GPU]}}
"""
PROFILE = """\
version: 1
name: mine
description: A board.
sources:
  manual: {title: Manual, url: "https://example.com", version: "1", as_of: 2026-11-30}
match: {source: manual, cpu: [nothing]}
defaults:
  device: {value: ["tflite:edgetpu", CPU], why: because}
  requests: {value: 3, why: because}
"""
GIVEN = """\
profile: mine (asked for)
  ask: device tflite:edgetpu, CPU; requests 3 (default of the profile)
  shut: requests 3 (default of the profile)
"""


Command = Callable[..., tuple[int, str, str]]


@pytest.fixture
def pipeline(tmp_path: Path, own: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "asking.py").write_text(KINDS)
    (own / "mine.yaml").write_text(PROFILE)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    file = tmp_path / "p.yaml"
    file.write_text(PIPELINE.format(name=f"profile-{os.getpid()}"))
    yield file
    sys.modules.pop("asking", None)


@pytest.fixture
def command(capsys: pytest.CaptureFixture[str]) -> Command:
    """Run a command line here: what it returns, prints and tells."""

    def run(*arguments: str | Path) -> tuple[int, str, str]:
        code = exit_code_of([str(argument) for argument in arguments])
        return code, *capsys.readouterr()

    return run


def test_a_plan_names_the_profile_and_what_it_filled_in(command: Command, pipeline: Path) -> None:
    code, text, err = command("plan", pipeline, "--profile", "mine")
    assert code == 0, err
    assert GIVEN in text
    assert "  ask: tflite:edgetpu, CPU\n  shut: GPU\n" in text
    plan = json.loads(command("plan", pipeline, "--profile", "mine", "--format", "json")[1])
    assert plan["profile"]["why"] == "asked for"
    assert plan["profile"]["given"]["shut"] == {"requests": 3}


def test_without_the_option_one_is_picked_and_named(command: Command, pipeline: Path) -> None:
    code, text, err = command("plan", pipeline)
    assert code == 0, err
    assert "\nprofile: " in text
    assert " (picked: " in text
    assert "default of the profile" not in text


@pytest.mark.process
def test_a_run_uses_what_was_filled_in_and_says_so(edgert: Edgert, pipeline: Path, own) -> None:
    done = edgert("run", pipeline, "--profile", own / "mine.yaml")
    assert done.returncode == 0, done.stderr
    assert GIVEN in done.stderr
    assert "given ['tflite:edgetpu', 'CPU'] 3" in done.stderr
    assert "given ['GPU'] 3" in done.stderr


def test_check_tells_the_profile_and_its_faults(command: Command, pipeline: Path, own) -> None:
    found = json.loads(command("check", pipeline, "--profile", "mine", "--json")[1])
    assert found["profile"] == {"name": "mine", "why": "asked for"}
    (own / "mine.yaml").write_text(PROFILE.replace("requests:", "request:"))
    fault = f"{own}/mine.yaml:9:3: key 'defaults.request': there is no key 'request'. "
    told = f"{fault}Did you mean 'requests'? Keys: device, requests, threads.\n"
    assert command("check", pipeline, "--profile", "mine") == (2, "", told)
    code, _, err = command("check", pipeline)
    assert (code, err) == (0, f"warning: {told}")


@pytest.mark.parametrize("name", ["run", "plan", "check"])
def test_a_profile_that_there_is_not(command: Command, pipeline: Path, name: str) -> None:
    code, text, err = command(name, pipeline, "--profile", "rk3558")
    assert (code, text) == (2, "")
    assert err.startswith("--profile: there is no profile 'rk3558'. Did you mean 'rk3588'?")
    code, text, more = command(name, pipeline, "--profile", "rk3558", "--set", "camera.cuont=3")
    assert (code, text) == (2, "")
    assert more.startswith(err)
    assert "no key 'cuont'" in more.removeprefix(err)


def test_devices_lists_the_profiles(command: Command, pipeline: Path) -> None:
    lines = command("devices", "--profiles")[1].splitlines()
    names = [line.split()[0] for line in lines[1:]]
    assert names == sorted(names)
    states = dict(zip(names, lines[1:], strict=True))
    assert "never picked" in states["emulated-npu"]
    assert str(pipeline.parent) in states["mine"]
    assert sum(" picked " in line and "never" not in line for line in lines) == 1
    found = json.loads(command("devices", "--profiles", "--json")[1])
    assert found["schema"] == LIST_SCHEMA == "edgert.profiles/1"
    assert [each["name"] for each in found["profiles"]] == names


@pytest.mark.process
def test_devices_shows_a_profile_beside_this_machine(edgert: Edgert, own: Path) -> None:
    text = edgert("devices", "--profile", "emulated-npu").stdout
    assert text.startswith("profile   emulated-npu (asked for)\n")
    assert "npu          emulated  emulated:NPU" in text
    found = json.loads(edgert("devices", "--profile", "--json").stdout)
    assert found["why"].startswith("picked: ")


def test_the_page_of_a_profile_has_its_facts_with_their_sources() -> None:
    profile = load_profile(SHIPPED / "rk3588.yaml")
    here = (Presence("npu", "unusable", (), "no runtime of edgert uses it", "Write a backend"),)
    text = "\n\n".join(profile_text(profile, "asked for", here))
    assert "p-cores   4-7 [linux-dts]\n" in text
    assert "  operators       89 of onnx [rknn-operators], evidence static-list\n" in text
    assert "npu          unusable      no runtime of edgert uses it. Write a backend." in text
    for name, source in profile.spec.sources.items():
        assert f"  [{name}] {source.title}, {source.version}, read {source.as_of}: " in text


@pytest.mark.parametrize("file", sorted(SHIPPED.glob("*.yaml")), ids=lambda file: file.stem)
def test_the_json_of_a_profile_is_a_profile(file: Path) -> None:
    found = profile_json(load_profile(file), "asked for", ())
    assert list(found) == ["schema", "file", "why", "evidence", "profile", "here"]
    assert (found["schema"], found["evidence"]) == ("edgert.profile/1", "static-list")
    Draft202012Validator(schema()).validate(json.loads(json.dumps(found))["profile"])

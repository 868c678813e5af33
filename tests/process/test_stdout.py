"""Standard output has results or one JSON document, whatever a stage's own code prints."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from tests.conftest import Edgert

pytestmark = pytest.mark.process

CODE = """
from edgert.stages.base import Stage, StageOptions

print("imported")


class Says(Stage):
    inputs = {"detections": "detections"}
    outputs = {"detections": "detections"}
    options = StageOptions

    @classmethod
    def plan(cls, options, inputs, context):
        print("planned")
        return {"detections": inputs["detections"]}

    def process(self, inputs, outputs):
        raise AssertionError("it is only planned")
"""
FILE = """
version: 1
name: says
stages:
  seen: {kind: "nothing:Nothing"}
  says: {kind: "says:Says", inputs: {detections: seen.detections}}
  results: {kind: sink.jsonl, inputs: {detections: says.detections}}
"""
SOURCE = """
from edgert.stages.base import Source, StageOptions
from edgert.tensor import PortSpec, TensorSpec


class Nothing(Source):
    outputs = {"detections": "detections"}
    options = StageOptions

    @classmethod
    def plan(cls, options, inputs, context):
        tensors = {
            "boxes": TensorSpec("f32", (1, 4)),
            "scores": TensorSpec("f32", (1,)),
            "classes": TensorSpec("i32", (1,)),
        }
        return {"detections": PortSpec("detections", tensors)}

    def grab(self):
        return None
"""


@pytest.fixture
def talking(tmp_path: Path) -> Path:
    (tmp_path / "says.py").write_text(CODE)
    (tmp_path / "nothing.py").write_text(SOURCE)
    file = tmp_path / "says.yaml"
    file.write_text(FILE)
    return file


@pytest.mark.parametrize(
    "command",
    [("plan", "--format", "json"), ("check", "--json"), ("run", "--no-progress")],
    ids=lambda command: command[0],
)
def test_what_is_printed_while_a_file_is_planned(
    talking: Path, edgert: Edgert, command: tuple[str, ...]
) -> None:
    name, *options = command
    environment = {**os.environ, "PYTHONPATH": str(talking.parent)}
    done = edgert(name, talking, *options, env=environment, cwd=Path(__file__).parents[2])
    assert done.returncode == 0, done.stderr
    said = done.stderr.splitlines()
    assert {"imported", "planned"} <= set(said)
    if name == "run":
        assert done.stdout == ""
    else:
        json.loads(done.stdout)

"""Stages that feed a model and write down what comes out, and pipelines of them."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

from edgert.options import option
from edgert.stages.base import Inputs, Outputs, PlanContext, Ports, Stage, StageOptions
from edgert.tensor import FrameHeader, PortSpec, TensorSpec
from tests import models
from tests.process.kinds import Numbers, NumbersOptions, lines_of

KINDS = "tests.process.tensors:"


class FramesOptions(NumbersOptions):
    every_ms: float = option(default=0, description="How long after the last one each comes.")


class Frames(Numbers):
    """x f32 [2, 3], full of the frame's number."""

    outputs: ClassVar[Mapping[str, str]] = {"tensor": "tensors"}
    options = FramesOptions
    settings: FramesOptions

    @classmethod
    def plan(
        cls, options: FramesOptions, inputs: Ports, context: PlanContext
    ) -> dict[str, PortSpec]:
        return {"tensor": PortSpec("tensors", {"x": TensorSpec("f32", (2, 3))})}

    def open(self) -> None:
        super().open()
        self.clock = threading.Event()

    def grab(self) -> FrameHeader | None:
        if self.next < self.settings.count:
            self.clock.wait(self.settings.every_ms / 1e3)
        return super().grab()

    def write(self, outputs: Outputs) -> None:
        outputs["tensor"].tensor("x")[:] = self.current


class LiveFrames(Frames):
    """The same as of a camera: frames that have no room are dropped."""

    is_live = True


class FindOptions(StageOptions):
    label: str = option(default="thing", description="What it finds.")


class Find(Stage):
    """One box ten wide, which begins at the first value of y; none where that is below 0."""

    inputs: ClassVar[Mapping[str, str]] = {"raw": "tensors"}
    outputs: ClassVar[Mapping[str, str]] = {"detections": "detections"}
    options = FindOptions
    is_stateless = True
    settings: FindOptions

    @classmethod
    def plan(cls, options: FindOptions, inputs: Ports, context: PlanContext) -> dict[str, PortSpec]:
        tensors = {
            "boxes": TensorSpec("f32", (1, 4)),
            "scores": TensorSpec("f32", (1,)),
            "classes": TensorSpec("i32", (1,)),
        }
        return {"detections": PortSpec("detections", tensors, 0, {"labels": [options.label]})}

    def process(self, inputs: Inputs, outputs: Outputs) -> None:
        at = float(inputs["raw"].tensors["y"].flat[0])
        loan, count = outputs["detections"], int(at >= 0)
        loan.tensor("boxes", (count, 4))[:] = (at, 0, at + 10, 10)
        loan.tensor("scores", (count,))[:] = 1
        loan.tensor("classes", (count,))[:] = 0


class WriteOptions(StageOptions):
    path: str = option(description="File that gets a line for each frame: its number, the value.")


class WriteFirst(Stage):
    """Writes the first value of y."""

    inputs: ClassVar[Mapping[str, str]] = {"tensor": "tensors"}
    options = WriteOptions
    settings: WriteOptions

    @classmethod
    def plan(cls, options: WriteOptions, inputs: Ports, context: PlanContext) -> dict[str, Any]:
        return {}

    def open(self) -> None:
        self.file = lines_of(self)

    def process(self, inputs: Inputs, outputs: Outputs) -> None:
        sample = inputs["tensor"]
        self.file.write(f"{sample.header.sequence} {float(sample.tensors['y'].flat[0]):g}\n")

    def close(self) -> None:
        self.file.close()


def inferring(folder: Path, count: int = 40, **infer: Any) -> dict[str, dict[str, Any]]:
    """Frames through a model that doubles, written to ``out.txt``; needs no assets."""
    model = models.doubling(folder / "doubling.onnx")
    out = {"path": str(folder / "out.txt"), "inputs": {"tensor": "detector.outputs"}}
    detector = {"model": str(model), "inputs": {"tensor": "frames.tensor"}, **infer}
    return {
        "frames": {"kind": f"{KINDS}Frames", "count": count},
        "detector": {"kind": "edgert.stages.infer:Infer", **detector},
        "out": {"kind": f"{KINDS}WriteFirst", **out},
    }

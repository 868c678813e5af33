"""Stages for benchmarks of what lies between them: a camera that only keeps time, and a drain."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import ClassVar

from pydantic import Field

from edgert.stages.base import Inputs, Outputs, PlanContext, Ports, Source, Stage, StageOptions
from edgert.tensor import FrameHeader, PortSpec, TensorSpec


class PacedOptions(StageOptions):
    """Options of ``Paced``."""

    fps: float = Field(gt=0, description="Frames a second.")
    seconds: float = Field(gt=0, description="How long.")
    shape: tuple[int, ...] = Field(description="Shape of its tensor of f32.")
    offset: float = Field(0.0, ge=0, le=1, description="Share of an interval that it begins late.")


class Paced(Source):
    """A live camera whose frames are tensors that nobody fills: it costs next to nothing."""

    is_live = True
    outputs: ClassVar[Mapping[str, str]] = {"tensor": "tensors"}
    options: ClassVar[type[StageOptions]] = PacedOptions
    settings: PacedOptions

    @classmethod
    def plan(
        cls, options: PacedOptions, inputs: Ports, context: PlanContext
    ) -> dict[str, PortSpec]:
        """Say what the tensor is like, and how fast frames come."""
        tensors = {"x": TensorSpec("f32", options.shape)}
        return {"tensor": PortSpec("tensors", tensors, attributes={"fps": options.fps})}

    def open(self) -> None:
        """Begin the clock with the first frame."""
        self._number = 0
        self._began_s = 0.0

    def grab(self) -> FrameHeader | None:
        """Wait for the next frame's time, which does not shift when a wake-up is late."""
        settings = self.settings
        if self._number >= settings.fps * settings.seconds:
            return None
        if not self._began_s:
            self._began_s = time.monotonic() + settings.offset / settings.fps
        due_s = self._began_s + self._number / settings.fps
        time.sleep(max(0.0, due_s - time.monotonic()))
        self._number += 1
        return FrameHeader(captured_ns=time.monotonic_ns(), width=1, height=1)

    def write(self, outputs: Outputs) -> None:
        """Let the tensor be as it is."""
        outputs["tensor"].tensor("x", self.settings.shape)


class Drain(Stage):
    """Takes whatever comes."""

    inputs: ClassVar[Mapping[str, str]] = {"any": "*"}

    def process(self, inputs: Inputs, outputs: Outputs) -> None:
        """Do nothing."""

"""Stages for benchmarks of what lies between them: frames by the clock, and who takes them."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar

from edgert.options import option
from edgert.stages.base import Inputs, Outputs, PlanContext, Ports, Source, Stage, StageOptions
from edgert.tensor import FrameHeader, PortSpec, TensorSpec


class PacedOptions(StageOptions):
    """Options of ``Paced``."""

    fps: float = option(
        default=0.0, ge=0, description="Frames a second; 0 for as many as are taken."
    )
    seconds: float = option(
        default=0.0, ge=0, description="How long; 0 for until the run is ended."
    )
    shape: tuple[int, ...] = option(default=(2, 3), description="Shape of its tensor of f32.")
    offset: float = option(
        default=0.0, ge=0, le=1, description="Share of an interval that it begins late."
    )


class Paced(Source):
    """Tensors of zeros by the clock, at next to no cost; those that are not taken yet wait."""

    outputs: ClassVar[Mapping[str, str]] = {"tensor": "tensors"}
    options: ClassVar[type[StageOptions]] = PacedOptions
    settings: PacedOptions

    @classmethod
    def plan(
        cls, options: PacedOptions, inputs: Ports, context: PlanContext
    ) -> dict[str, PortSpec]:
        """Say what the tensor is like, and how fast frames come."""
        tensors = {"x": TensorSpec("f32", options.shape)}
        attributes = {"fps": options.fps} if options.fps else {}
        return {"tensor": PortSpec("tensors", tensors, attributes=attributes)}

    def open(self) -> None:
        """Begin the clock with the first frame."""
        self._number = 0
        self._began_s = 0.0

    def grab(self) -> FrameHeader | None:
        """Wait for the next frame's time, which does not shift when a wake-up is late."""
        settings = self.settings
        now_s = time.monotonic()
        interval_s = 1 / settings.fps if settings.fps else 0.0
        if not self._began_s:
            self._began_s = now_s + settings.offset * interval_s
        due_s = self._began_s + self._number * interval_s if interval_s else now_s
        if settings.seconds and due_s - self._began_s > settings.seconds - interval_s / 2:
            return None
        time.sleep(max(0.0, due_s - now_s))
        self._number += 1
        return FrameHeader(captured_ns=round(due_s * 1e9), width=1, height=1)

    def write(self, outputs: Outputs) -> None:
        """Let the tensor be as it is: zeros, as memory begins."""
        outputs["tensor"].tensor("x", self.settings.shape)


class Camera(Paced):
    """The same as a live source: frames that are not taken are dropped."""

    is_live = True


class Drain(Stage):
    """Takes whatever comes."""

    inputs: ClassVar[Mapping[str, str]] = {"any": "*"}

    def process(self, inputs: Inputs, outputs: Outputs) -> None:
        """Do nothing."""


class LatenciesOptions(StageOptions):
    """Options of ``Latencies``."""

    path: str = option(description="File that gets a latency (ms) and a time (s) a line.")


class Latencies(Stage):
    """Writes how old each frame is when it arrives, and when that is."""

    inputs: ClassVar[Mapping[str, str]] = {"any": "*"}
    options: ClassVar[type[StageOptions]] = LatenciesOptions
    settings: LatenciesOptions

    def open(self) -> None:
        """Open the file, and leave beside it when that was."""
        Path(f"{self.settings.path}.opened").write_text(f"{time.monotonic()}", encoding="utf-8")
        self._file = Path(self.settings.path).open("w", encoding="utf-8")  # noqa: SIM115  see close()

    def process(self, inputs: Inputs, outputs: Outputs) -> None:
        """Write one line."""
        now_ns = time.monotonic_ns()
        age_ns = now_ns - inputs["any"].header.captured_ns
        self._file.write(f"{age_ns / 1e6:.3f} {now_ns / 1e9:.4f}\n")

    def close(self) -> None:
        """Close the file."""
        self._file.close()

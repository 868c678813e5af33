"""Stages for tools/shared-devices: frames by the clock, and a sink that writes down latencies."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

from pydantic import Field

from edgert.stages.base import Inputs, Outputs, PlanContext, Ports, Source, Stage, StageOptions
from edgert.tensor import FrameHeader, PortSpec, TensorSpec


class PacedOptions(StageOptions):
    """Options of ``Paced``."""

    fps: float = Field(0.0, ge=0, description="Frames a second; 0 for as many as are taken.")


class Paced(Source):
    """x f32 [2, 3] at a rate, however late the ones before were taken: as a camera does."""

    outputs: ClassVar[Mapping[str, str]] = {"tensor": "tensors"}
    options = PacedOptions
    settings: PacedOptions

    @classmethod
    def plan(
        cls, options: PacedOptions, inputs: Ports, context: PlanContext
    ) -> dict[str, PortSpec]:
        """Say what its frames are."""
        return {"tensor": PortSpec("tensors", {"x": TensorSpec("f32", (2, 3))})}

    def open(self) -> None:
        """Its clock begins with the first frame."""
        self._due_s = 0.0

    def grab(self) -> FrameHeader:
        """Wait for the next frame."""
        now_s = time.monotonic()
        if self.settings.fps and self._due_s:
            self._due_s += 1 / self.settings.fps
            time.sleep(max(0.0, self._due_s - now_s))
        else:
            self._due_s = now_s
        return FrameHeader(captured_ns=round(self._due_s * 1e9), width=1, height=1)

    def write(self, outputs: Outputs) -> None:
        """Write the frame."""
        outputs["tensor"].tensor("x")[:] = 1


class LatenciesOptions(StageOptions):
    """Options of ``Latencies``."""

    path: str = Field(description="File that gets a latency (ms) and a time (s) a line.")


class Latencies(Stage):
    """Writes how old each result is when it arrives, and when that is."""

    inputs: ClassVar[Mapping[str, str]] = {"tensor": "tensors"}
    options = LatenciesOptions
    settings: LatenciesOptions

    @classmethod
    def plan(cls, options: Any, inputs: Ports, context: PlanContext) -> dict[str, PortSpec]:
        """It has no outputs."""
        return {}

    def open(self) -> None:
        """Open the file, and leave beside it when that was."""
        Path(f"{self.settings.path}.opened").write_text(f"{time.monotonic()}", encoding="utf-8")
        self._file = Path(self.settings.path).open("w", encoding="utf-8")  # noqa: SIM115  see close()

    def process(self, inputs: Inputs, outputs: Outputs) -> None:
        """Write one line."""
        now_ns = time.monotonic_ns()
        age_ns = now_ns - inputs["tensor"].header.captured_ns
        self._file.write(f"{age_ns / 1e6:.3f} {now_ns / 1e9:.4f}\n")

    def close(self) -> None:
        """Close the file."""
        self._file.close()

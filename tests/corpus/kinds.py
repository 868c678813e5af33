"""Kinds of stage for the corpus: ports and options only, so that messages do not depend on ours."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal

from edgert.options import Before, Options, option
from edgert.stages.base import Source, Stage, StageOptions
from edgert.stages.registry import Registry


class CameraOptions(StageOptions):
    uri: str = option(description="What is read: a file or an address.")
    fps: float | None = option(default=None, gt=0, le=1000, description="Frames per second.")


class Camera(Source):
    """Frames from a camera."""

    outputs: ClassVar[Mapping[str, str]] = {"image": "image"}
    options = CameraOptions


class ScaleOptions(StageOptions):
    width: int = option(default=640, ge=1, le=8192, description="Width in pixels.")
    mode: Literal["letterbox", "stretch"] = option(
        default="letterbox", description="How it is fitted."
    )
    is_fast: bool = option(default=False, description="Whether to prefer speed.")
    mean: tuple[float, ...] = option(
        default=(), max_length=4, description="Subtracted per channel."
    )


class Scale(Stage):
    """Makes a model's input of an image."""

    inputs: ClassVar[Mapping[str, str]] = {"image": "image"}
    outputs: ClassVar[Mapping[str, str]] = {"tensor": "tensors", "preview?": "image"}
    options = ScaleOptions
    is_stateless = True


def _one_or_more(value: Any) -> Any:
    return (value,) if isinstance(value, str) else value


class DetectorOptions(StageOptions):
    model: str = option(description="A model.")
    requests: int = option(default=1, ge=1, le=64, description="Requests in flight.")
    device: Annotated[tuple[str, ...], Before(_one_or_more)] = option(
        default=("CPU",), description="Devices in order."
    )
    balance: list[str] = option(default=[], description="Devices that share the frames.")
    options: dict[str, Any] = option(default={}, description="Options of the backend.")


class Detector(Stage):
    """Runs a model."""

    inputs: ClassVar[Mapping[str, str]] = {"tensor": "tensors"}
    outputs: ClassVar[Mapping[str, str]] = {"outputs": "tensors"}
    options = DetectorOptions
    is_stateless = True


def _not_zero(value: Any) -> Any:
    if value == 0:
        raise ValueError("an area that ends at 0 is empty. Give a larger 'right'")
    return value


class Area(Options):
    left: float = option(default=0, ge=0, le=1, description="Left border.")
    right: Annotated[float, Before(_not_zero)] = option(
        default=1, ge=0, le=1, description="Right border."
    )


class PeopleOptions(StageOptions):
    threshold: float = option(default=0.5, ge=0, le=1, description="Least score.")
    labels: tuple[str, ...] | None = option(default=None, description="Labels that are kept.")
    area: Area = option(default=Area(), description="Where to look.")


class People(Stage):
    """Finds people in a model's outputs."""

    inputs: ClassVar[Mapping[str, str]] = {"raw": "tensors"}
    outputs: ClassVar[Mapping[str, str]] = {"detections": "detections"}
    options = PeopleOptions


class ResultsOptions(StageOptions):
    path: str = option(default="-", description="Where lines are written.")

    @property
    def prints(self) -> bool:
        return self.path == "-"


class Results(Stage):
    """Writes lines."""

    inputs: ClassVar[Mapping[str, str]] = {"detections": "detections"}
    options = ResultsOptions


class Draw(Stage):
    """Draws boxes on images."""

    inputs: ClassVar[Mapping[str, str]] = {"image": "image", "detections?": "detections"}


class Count(Stage):
    """Counts frames of any sort."""

    inputs: ClassVar[Mapping[str, str]] = {"frames": "*"}


class Idle(Stage):
    """Takes detections if there are any."""

    inputs: ClassVar[Mapping[str, str]] = {"detections?": "detections"}


KINDS = {
    f"test.{name}": f"kinds:{name.capitalize()}"
    for name in ("camera", "scale", "detector", "people", "results", "draw", "count", "idle")
}


def corpus_kinds() -> Registry:
    """Return the registry of this file's kinds and of ``package.module:Class``, without ours."""
    return Registry(KINDS, built_in={})

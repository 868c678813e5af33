from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest

from edgert.models.describe import DetectionHead, ImageInput, ModelDescription
from edgert.stages.base import PlanContext
from edgert.stages.harness import StageRun, opened
from edgert.stages.postprocess.detection import DetectionPostprocess
from edgert.tensor import PortSpec, TensorSpec

Shapes = Mapping[str, tuple[int, ...]]


class Table:
    """One model, whatever it is called."""

    def __init__(self, model: ModelDescription) -> None:
        self._model = model

    def describe(self, model: str, shapes: Mapping[str, Any]) -> ModelDescription:
        return self._model


@pytest.fixture
def context(tmp_path: Path) -> Callable[..., PlanContext]:
    """What stage ``people`` may ask; the model's picture is 64 wide and 32 high by default."""

    def make(head: DetectionHead | None = None, size: tuple[int, int] = (64, 32)) -> PlanContext:
        inputs = {"images": TensorSpec("f32", (1, 3, size[1], size[0]))}
        image = ImageInput("images", "NCHW", "RGB", "stretch")
        model = ModelDescription(
            "net", "net.onnx", "", "onnx", inputs, {}, image=image, detection=head
        )
        return PlanContext("people", "stage 'people'", str(tmp_path), Table(model), {})

    return make


def port_of(shapes: Shapes, dtype: str = "f32") -> PortSpec:
    tensors = {name: TensorSpec(dtype, shape) for name, shape in shapes.items()}
    attributes = {"model": "net", "model_file": {"path": "net.onnx", "shapes": {}}}
    return PortSpec("tensors", tensors, attributes=attributes)


@pytest.fixture
def raw() -> Callable[..., PortSpec]:
    """The port of a model's outputs, by name and shape."""
    return port_of


@pytest.fixture
def postprocess(context) -> Callable[..., AbstractContextManager[StageRun]]:
    """Open a stage that reads outputs of the shapes given."""

    def open_stage(
        head: DetectionHead, shapes: Shapes, *, size: tuple[int, int] = (64, 32), **options: Any
    ) -> AbstractContextManager[StageRun]:
        settings = {"threshold": 0.5, **options}
        return opened(DetectionPostprocess, settings, {"raw": port_of(shapes)}, context(head, size))

    return open_stage

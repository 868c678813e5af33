from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from typing import Any

import pytest

from edgert.models.describe import ImageInput, ModelDescription
from edgert.options import option
from edgert.stages.base import PlanContext, StageOptions
from edgert.stages.harness import StageRun, opened
from edgert.stages.preprocess.image import ImagePreprocess
from edgert.tensor import TensorSpec, image_port

ALL_FORMATS = ("i420", "nv12", "gray8", "bgr24", "rgb24")


class DetectorOptions(StageOptions):
    """Options of a stage that runs a model."""

    model: str = "net"
    shape: dict[str, Any] = option(default={})


class Table:
    """Descriptions of models by name."""

    def __init__(self, models: Mapping[str, ModelDescription]) -> None:
        self._models = models

    def describe(self, model: str, shapes: Mapping[str, Any]) -> ModelDescription:
        return self._models[model]


def describe(
    inputs: Mapping[str, TensorSpec] | TensorSpec, image: ImageInput | None = None
) -> ModelDescription:
    if isinstance(inputs, TensorSpec):
        inputs = {"images": inputs}
    return ModelDescription("net", "net.onnx", "", "onnx", dict(inputs), {}, image=image)


@pytest.fixture
def feeding() -> Callable[..., PlanContext]:
    """What stage ``prepare`` may ask when ``detector`` runs the model described."""

    def context(*args: Any) -> PlanContext:
        stages = {"prepare": StageOptions(), "detector": DetectorOptions()}
        models = Table({"net": describe(*args)})
        return PlanContext("prepare", "stage 'prepare'", ".", models, stages)

    return context


@pytest.fixture
def preprocess(feeding) -> Callable[..., AbstractContextManager[StageRun]]:
    """Open a stage that feeds one input of the dtype and shape given."""

    def open_stage(
        dtype: str, shape: tuple[int, ...], max_size: tuple[int, int] = (1920, 1920), **options: Any
    ) -> AbstractContextManager[StageRun]:
        settings = {
            "for": "detector",
            "resize": "letterbox-centre",
            "colour": "RGB",
            "scale": 1.0,
            "pad": 114,
            **options,
        }
        port = image_port(*max_size, ALL_FORMATS)
        context = feeding(TensorSpec(dtype, shape))
        return opened(ImagePreprocess, settings, {"image": port}, context)

    return open_stage

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from edgert.errors import PipelineError, RunError
from edgert.models.reader import Models
from edgert.pipeline.adapter import read_as
from edgert.stages.base import PlanContext
from edgert.stages.harness import opened
from edgert.stages.infer import Infer
from edgert.stages.infer_options import InferOptions
from edgert.stages.item_session import ITEMS, ItemSession
from edgert.tensor import PortSpec, TensorSpec
from tests import models

MOST = 9


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    models.doubling(tmp_path / "doubling.onnx", (1, 3))
    models.doubling(tmp_path / "four.onnx", (4, 3))
    return tmp_path


def port(shape: tuple[int, ...] = (MOST, 3)) -> dict[str, PortSpec]:
    tensors = {"x": TensorSpec("f32", shape)}
    return {"tensor": PortSpec("tensors", tensors, attributes={ITEMS: shape[0]})}


def context(folder: Path) -> PlanContext:
    return PlanContext("reader", "stage 'reader'", str(folder), Models(folder), {})


@pytest.mark.parametrize("device", ["openvino:CPU", "onnxruntime:CPU", "emulated:NPU"])
@pytest.mark.parametrize("requests", [1, 2])
def test_each_row_is_an_inference_of_its_own(device: str, requests: int, folder: Path) -> None:
    settings = {"model": "doubling.onnx", "device": device, "requests": requests}
    with opened(Infer, settings, port(), context(folder)) as run:
        for rows in (MOST, 0, 1, 5):
            x = np.arange(rows * 3, dtype=np.float32).reshape(rows, 3)
            y = run.feed({"tensor": {"x": x}})["outputs"].tensors["y"]
            assert y.shape == (rows, 3)
            if not device.startswith("emulated"):
                np.testing.assert_array_equal(y, 2 * x)
        assert run.stage.capacity == 1


def test_the_plan_has_as_many_rows_of_results(folder: Path) -> None:
    planned = Infer.plan(InferOptions(model="doubling.onnx"), port(), context(folder))["outputs"]
    assert planned.tensors == {"y": TensorSpec("f32", (MOST, 3))}
    assert planned.attributes[ITEMS] == MOST


def test_a_model_for_several_at_once_is_refused(folder: Path) -> None:
    with pytest.raises(PipelineError) as caught:
        Infer.plan(InferOptions(model="four.onnx"), port(), context(folder))
    assert "arrives as f32[1,3], and model 'four.onnx' needs f32[4,3]" in str(caught.value)


def test_items_are_not_batched(folder: Path) -> None:
    options = read_as(InferOptions, {"model": "doubling.onnx", "batch": {"max_size": 2}})
    with pytest.raises(PipelineError) as caught:
        Infer.plan(options, port(), context(folder))
    assert "what arrives are items, which are inferred one by one" in str(caught.value)


class One:
    """Calls ``done`` before ``start`` returns, as TFLite does; the item of ``fails`` does."""

    requests = 2
    device = None
    copied_bytes = 0

    def __init__(self, fails: int) -> None:
        self.inputs = {"x": TensorSpec("f32", (1, 1))}
        self.outputs = {"y": TensorSpec("f32", (1, 1))}
        self.started = 0
        self._fails = fails

    def start(self, inputs: Any, outputs: Any, done: Any) -> None:
        self.started += 1
        outputs["y"][:] = inputs["x"]
        is_wrong = inputs["x"][0, 0] == self._fails
        done(RunError("device", "an inference failed") if is_wrong else None)


@pytest.mark.parametrize(("fails", "started"), [(0, 1), (2, 3), (127, 128), (-1, 128)])
def test_the_first_that_fails_ends_the_frame_once(fails: int, started: int) -> None:
    one, answers = One(fails), []
    x = np.arange(128, dtype=np.float32)[:, None]
    rooms = {"y": lambda shape: np.zeros(shape, np.float32)}
    ItemSession(one).start({"x": x}, rooms, answers.append)  # type: ignore[arg-type]
    assert [type(answer) for answer in answers] == [RunError if fails >= 0 else type(None)]
    assert one.started == started

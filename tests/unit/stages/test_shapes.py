"""Inputs of several sizes: what is prepared, what is refused, and which session a frame takes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from edgert.errors import DeviceLostError, FrameLostError, PipelineError, UserError
from edgert.models.cache import Cache
from edgert.models.reader import Models
from edgert.pipeline.adapter import read_as
from edgert.stages.base import PlanContext
from edgert.stages.harness import opened
from edgert.stages.infer import Infer, InferOptions
from edgert.stages.shape_ranges import combinations, largest, refuse_ranges
from edgert.tensor import PortSpec, TensorSpec
from tests import models

RANGE = {"x": [1, 3, [8, 16], [8, 16]]}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    models.convolution(tmp_path / "m.onnx", ["n", 3, "h", "w"])
    return tmp_path


def context(folder: Path, **stages: Any) -> PlanContext:
    return PlanContext("detector", "stage 'detector'", str(folder), Models(folder), stages)


def port(*shape: int) -> dict[str, PortSpec]:
    return {"tensor": PortSpec("tensors", {"x": TensorSpec("f32", shape)})}


def planned(folder: Path, **settings: Any) -> PortSpec:
    options = read_as(InferOptions, {"model": "m.onnx", "shape": RANGE, **settings})
    return Infer.plan(options, port(1, 3, 16, 16), context(folder))["outputs"]


def test_every_combination_of_sizes_the_largest_first() -> None:
    assert combinations(RANGE) == [
        {"x": [1, 3, 16, 16]},
        {"x": [1, 3, 16, 8]},
        {"x": [1, 3, 8, 16]},
        {"x": [1, 3, 8, 8]},
    ]
    assert largest(RANGE) == {"x": [1, 3, 16, 16]}
    assert combinations({"a": [1, [4]], "b": [[2, 3]]}) == [
        {"a": [1, 4], "b": [3]},
        {"a": [1, 4], "b": [2]},
    ]


def test_slots_have_room_for_the_largest(folder: Path) -> None:
    found = planned(folder)
    assert found.tensors == {"y": TensorSpec("f32", (1, 4 * 16 * 16))}
    assert len(found.attributes["shapes"]) == 4
    assert "shapes" not in planned(folder, shape={"x": [1, 3, 16, [16]]}).attributes


@pytest.mark.parametrize("device", ["openvino:CPU", "onnxruntime:CPU"])
def test_each_frame_is_inferred_in_its_own_shape(device: str, folder: Path) -> None:
    rng = np.random.default_rng(1)
    settings = {"model": "m.onnx", "shape": RANGE, "device": device}
    with opened(Infer, settings, port(1, 3, 16, 16), context(folder)) as run:
        for height, width in ((8, 16), (16, 16), (8, 8), (8, 16)):
            x = rng.normal(size=(1, 3, height, width)).astype(np.float32)
            y = run.feed({"tensor": {"x": x}})["outputs"].tensors["y"]
            fixed = {**settings, "shape": {"x": list(x.shape)}}
            with opened(Infer, fixed, port(*x.shape), context(folder)) as alone:
                wanted = alone.feed({"tensor": {"x": x}})["outputs"].tensors["y"]
            np.testing.assert_allclose(y, wanted, rtol=1e-4, atol=1e-4)
        with pytest.raises(FrameLostError, match=r"'x' has shape \[1, 3, 8, 9\] in this frame"):
            run.feed({"tensor": {"x": np.zeros((1, 3, 8, 9), np.float32)}})
        costs = run.stage.context.report["variants"]
        assert len(costs) == 3
        assert all(cost["open_s"] > 0 and cost["infer_ms"] > 0 for cost in costs.values())
    assert run.stage.context.copied_bytes == 0


@pytest.mark.parametrize("device", ["openvino:CPU", "onnxruntime:CPU"])
def test_a_device_that_goes_mad_is_found_in_every_shape(device: str, folder: Path) -> None:
    settings = {"model": "m.onnx", "shape": RANGE, "device": device}
    with opened(Infer, settings, port(1, 3, 16, 16), context(folder)) as run:
        for size in (16, 8):
            x = np.full((1, 3, size, size), np.nan, np.float32)
            with pytest.raises(DeviceLostError, match="its output 'y' is NaN or infinite through"):
                run.feed({"tensor": {"x": x}})


def test_tflite_takes_several_shapes(tmp_path: Path) -> None:
    pytest.importorskip("ai_edge_litert", reason="needs the extra 'tflite'")
    models.of("tflite").doubling(tmp_path / "m.tflite", (1, 3, 8, 8))
    settings = {"model": "m.tflite", "shape": RANGE, "device": "tflite:CPU"}
    with opened(Infer, settings, port(1, 3, 16, 16), context(tmp_path)) as run:
        for size in ((8, 16), (16, 16), (8, 8)):
            x = np.random.default_rng(1).normal(size=(1, 3, *size)).astype(np.float32)
            y = run.feed({"tensor": {"x": x}})["outputs"].tensors["y"]
            np.testing.assert_array_equal(y, 2 * x)


def test_shapes_that_are_read_ahead_are_those_that_describe_tells(tmp_path: Path) -> None:
    models.convolution(tmp_path / "m.onnx", ["n", 3, "h", "w"])
    reader = Models(tmp_path, cache=Cache(tmp_path / "cache"))
    shapes = [{"x": [1, 3, 8, 8]}, {"x": [1, 3, 8]}, {"x": [1, 3, 8, 16]}]
    reader.read_ahead("m.onnx", shapes)
    remembered = list((tmp_path / "cache" / "signatures").iterdir())
    assert len(remembered) == 2  # of three dimensions it is not
    reader.read_ahead("m.onnx", [*shapes, {"x": [2, 3, 8, 8]}])
    assert len(list((tmp_path / "cache" / "signatures").iterdir())) == 3
    assert reader.describe("m.onnx", shapes[2]).outputs == {"y": TensorSpec("f32", (1, 512))}
    with pytest.raises(UserError, match="the shape does not fit the model"):
        reader.describe("m.onnx", shapes[1])


def test_batches_of_several_shapes_are_refused_by_name(folder: Path) -> None:
    with pytest.raises(PipelineError, match="batches of frames of several shapes are not supp"):
        planned(folder, batch={"max_size": 2})


def test_a_size_that_the_model_does_not_take_is_refused_by_the_plan(tmp_path: Path) -> None:
    models.matrix(tmp_path / "m.onnx")
    options = read_as(InferOptions, {"model": "m.onnx", "shape": {"x": [2, [4, 3]]}})
    with pytest.raises(PipelineError, match=r"stage 'detector', shape: x \[2, 3\]: "):
        Infer.plan(options, port(2, 4), context(tmp_path))


def test_stages_that_know_one_shape_refuse_several(folder: Path) -> None:
    with pytest.raises(UserError, match="the model runs in 4 shapes, and this stage knows one"):
        refuse_ranges(planned(folder), "stage 'text'")

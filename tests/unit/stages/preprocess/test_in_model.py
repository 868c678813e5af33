"""Bytes in the slot, and the conversion compiled into the model that is fed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest

from edgert.models.describe import ImageInput
from edgert.models.reader import Models
from edgert.pipeline.adapter import read_as
from edgert.stages.base import PlanContext, StageOptions
from edgert.stages.harness import StageRun, opened
from edgert.stages.infer import Infer
from edgert.stages.infer_options import InferOptions
from edgert.stages.preprocess.image import ImagePreprocess, ImagePreprocessOptions
from edgert.tensor import FrameHeader, PortSpec, TensorSpec, image_port
from tests import models

FLOATS = TensorSpec("f32", (1, 3, 416, 416))
BYTES = TensorSpec("u8", (1, 3, 416, 416))
SCALED = ImageInput("images", "NCHW", "RGB", "stretch", 7, 1 / 255, (0.5,), (0.1, 0.2, 0.3))


@pytest.fixture
def inferring(feeding) -> Callable[..., PlanContext]:
    """As ``feeding``, with a stage ``detector`` that is an ``infer``."""

    def context(*args: Any) -> PlanContext:
        found = feeding(*args)
        stages = {"prepare": StageOptions(), "detector": InferOptions(model="net")}
        return PlanContext(found.name, found.place, ".", found.models, stages)

    return context


def plan(context: PlanContext, **settings: Any) -> PortSpec:
    options = read_as(ImagePreprocessOptions, {"for": "detector", **settings})
    return ImagePreprocess.plan(options, {"image": image_port(64, 48)}, context)["tensor"]


@pytest.mark.parametrize("dtype", ["f32", "f16"])
def test_bytes_leave_and_say_what_the_model_does_to_them(inferring, dtype) -> None:
    port = plan(inferring(TensorSpec(dtype, FLOATS.shape), SCALED), mean=(0.25,))
    assert port.tensors == {"images": BYTES}
    assert port.attributes["byte_inputs"] == {
        "images": {"layout": "NCHW", "scale": 1 / 255, "mean": (0.25,), "std": (0.1, 0.2, 0.3)}
    }
    image = port.attributes["image"]
    assert (image["scale"], image["mean"], image["std"], image["pad"]) == (1, (), (), 7)


def test_values_leave_where_it_is_asked_for(inferring) -> None:
    port = plan(inferring(FLOATS, SCALED), convert="here")
    assert port.tensors == {"images": FLOATS}
    assert port.attributes["image"]["scale"] == 1 / 255
    assert "byte_inputs" not in port.attributes


def test_values_leave_where_no_stage_of_the_file_runs_the_model(inferring) -> None:
    port = plan(inferring(FLOATS, SCALED), **{"for": None, "model": "net"})
    assert port.tensors == {"images": FLOATS}


def test_values_leave_for_a_kind_that_may_not_convert(feeding) -> None:
    assert plan(feeding(FLOATS, SCALED)).tensors == {"images": FLOATS}


@pytest.mark.parametrize("dtype", ["u8", "i8"])
def test_a_model_of_whole_numbers_gets_its_own(inferring, dtype) -> None:
    image = ImageInput("images", "NCHW", "RGB", "stretch", 0, 0.5)
    spec = TensorSpec(dtype, FLOATS.shape)
    port = plan(inferring(spec, image))
    assert port.tensors == {"images": spec}
    assert "byte_inputs" not in port.attributes


def answers(
    folder: Path, model: str, frame: np.ndarray, **settings: Any
) -> dict[str, dict[str, np.ndarray]]:
    """What the model says of a frame, by where it is converted."""
    found = {}
    header = FrameHeader(width=frame.shape[1], height=frame.shape[0], pixel_format="bgr24")
    stages = {"prepare": StageOptions(), "detector": InferOptions(model=model)}
    for convert in ("in-model", "here"):
        places = [
            PlanContext(name, f"stage '{name}'", str(folder), Models(folder), stages)
            for name in stages
        ]
        options = {"for": "detector", "convert": convert, **settings}
        image = image_port(frame.shape[1], frame.shape[0], ("bgr24",))
        with opened(ImagePreprocess, options, {"image": image}, places[0]) as prepare:
            port = prepare.stage.context.outputs["tensor"]
            (name,) = port.tensors
            assert port.tensors[name].dtype == ("u8" if convert == "in-model" else "f32")
            sample = prepare.feed({"image": {"bgr": frame}}, header)["tensor"]
            with opened(Infer, {"model": model}, {"tensor": port}, places[1], threads=2) as run:
                found[convert] = outputs_of(run, {name: sample.tensors[name]})
            del sample
    return found


def outputs_of(run: StageRun, tensors: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    sample = run.feed({"tensor": tensors})["outputs"]
    assert run.stage.context.copied_bytes == 0
    return {name: array.copy() for name, array in sample.tensors.items()}


@pytest.mark.parametrize("layout", ["NCHW", "NHWC"])
@pytest.mark.parametrize("channels", [1, 3])
def test_the_model_sees_the_same_values(layout, channels, tmp_path) -> None:
    shape = (1, channels, 20, 30) if layout == "NCHW" else (1, 20, 30, channels)
    models.doubling(tmp_path / "m.onnx", shape)
    frame = np.random.default_rng(5).integers(0, 256, (48, 64, 3), np.uint8)
    numbers = {"scale": 1 / 255, "mean": [0.4] * channels, "std": [0.2, 0.3, 0.4][:channels]}
    colour = "RGB" if channels == 3 else "GRAY"
    settings = {"colour": colour, "resize": "letterbox-centre", "layout": layout, **numbers}
    found = answers(tmp_path, "m.onnx", frame, **settings)
    np.testing.assert_allclose(found["in-model"]["y"], found["here"]["y"], rtol=1e-5, atol=1e-5)
    assert np.ptp(found["here"]["y"]) > 3


def test_a_detector_says_the_same_of_a_real_frame(yolox_onnx: Path, vtest: Path) -> None:
    video = cv2.VideoCapture(str(vtest))
    has_frame, frame = video.read()
    video.release()
    assert has_frame
    settings = {"colour": "BGR", "resize": "letterbox-top-left", "scale": 1.0}
    found = answers(yolox_onnx.parent, yolox_onnx.name, frame, **settings)
    here, in_model = found["here"]["output"], found["in-model"]["output"]
    assert (here[0, :, 4] * here[0, :, 5]).max() > 0.5
    np.testing.assert_allclose(in_model, here, rtol=1e-4, atol=1e-4)

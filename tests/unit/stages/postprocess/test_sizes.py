"""A model that runs in several sizes: its outputs are read in the one that the frame came in."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from edgert.errors import FrameLostError, UserError
from edgert.models.describe import (
    DetectionHead,
    ImageInput,
    LinesHead,
    ModelDescription,
    PoseHead,
    SegmentationHead,
)
from edgert.stages.base import PlanContext
from edgert.stages.harness import opened
from edgert.stages.postprocess.detection import DetectionPostprocess
from edgert.stages.postprocess.pose import PosePostprocess
from edgert.stages.postprocess.segmentation import SegmentationPostprocess
from edgert.stages.postprocess.text_lines import TextLinesPostprocess
from edgert.tensor import FrameHeader, PortSpec, TensorSpec

SIZES = ((64, 64), (32, 64), (64, 32))  # width, height
HEADS = {
    "detection": DetectionHead("yolox", {"predictions": "out"}, labels=("thing",)),
    "lines": LinesHead("db", {"probability": "out"}),
    "segmentation": SegmentationHead("probability", {"mask": "out"}, ("background", "thing")),
    "pose": PoseHead("movenet", {"keypoints": "out"}, ("nose",)),
}


def output(task: str, width: int, height: int) -> tuple[int, ...]:
    if task == "detection":
        return (1, sum((width // stride) * (height // stride) for stride in (8, 16, 32)), 6)
    return {"pose": (1, 1, 1, 3), "segmentation": (1, height // 2, width // 2)}.get(
        task, (1, 1, height, width)
    )


class Resizable:
    """A model that takes any size."""

    def __init__(self, task: str) -> None:
        self._task = task

    def describe(self, model: str, shapes: Mapping[str, Any]) -> ModelDescription:
        height, width = shapes["x"][2:]
        return ModelDescription(
            model,
            *("net.onnx", "", "onnx"),
            {"x": TensorSpec("f32", tuple(shapes["x"]))},
            {"out": TensorSpec("f32", output(self._task, width, height))},
            image=ImageInput("x", "NCHW", "BGR", "stretch"),
            **{self._task: HEADS[self._task]},
        )


def reading(kind: Any, task: str, **settings: Any):
    shapes = [{"x": [1, 3, height, width]} for width, height in SIZES]
    attributes = {"model": "net", "model_file": {"shapes": shapes[0]}, "shapes": shapes}
    tensors = {"out": TensorSpec("f32", output(task, *SIZES[0]))}
    port = PortSpec("tensors", tensors, attributes=attributes)
    context = PlanContext("out", "stage 'out'", ".", Resizable(task), {})
    return opened(kind, settings, {"raw": port}, context)


def header(width: int, height: int) -> FrameHeader:
    """A frame of 640x640 that was stretched into the input."""
    transform = (640 / width, 0.0, 0.0, 0.0, 640 / height, 0.0)
    return FrameHeader(
        width=640, height=640, transform=transform, input_width=width, input_height=height
    )


@pytest.mark.parametrize("size", SIZES)
def test_boxes_where_the_outputs_alone_do_not_tell_the_size(size) -> None:
    """32x64 and 64x32 have as many cells: a wrong grid would put the box elsewhere."""
    width, height = size
    rows = np.zeros(output("detection", *size), np.float32)
    cell = 3 * (width // 8) + 2  # column 2, row 3 of the grid of stride 8
    rows[0, cell] = (0.5, 0.5, np.log(1), np.log(1), 1, 1)  # 8 pixels on each side
    with reading(DetectionPostprocess, "detection") as run:
        found = run.feed({"raw": {"out": rows}}, header(*size))["detections"].tensors["boxes"]
        x, y = 640 / width * 8, 640 / height * 8
        np.testing.assert_allclose(found, [[2 * x, 3 * y, 3 * x, 4 * y]], rtol=1e-5)


@pytest.mark.parametrize("size", SIZES)
def test_lines_masks_and_poses_in_each_size(size) -> None:
    width, height = size
    upper = (slice(height // 4, height // 2), slice(width // 4, width // 2))
    whole = np.zeros((1, 1, height, width), np.float32)
    whole[0, 0][upper] = 1
    with reading(TextLinesPostprocess, "lines", unclip=0) as run:
        found = run.feed({"raw": {"out": whole}}, header(*size))["detections"].tensors["boxes"]
        np.testing.assert_allclose(found, [[160, 160, 320, 320]])
    half = np.ascontiguousarray(whole[0, :, ::2, ::2])
    with reading(SegmentationPostprocess, "segmentation") as run:
        mask = run.feed({"raw": {"out": half}}, header(*size))["segmentation"]
        assert mask.tensors["mask"].shape == (height // 2, width // 2)
        assert mask.tensors["mask"].mean() == 1 / 16
        assert mask.header.transform == (1280 / width, 0, 0, 0, 1280 / height, 0)
    with reading(PosePostprocess, "pose") as run:
        point = np.array([0.25, 0.5, 0.9], np.float32).reshape(1, 1, 1, 3)  # y, x, score
        found = run.feed({"raw": {"out": point}}, header(*size))["poses"].tensors["keypoints"]
        np.testing.assert_allclose(found, [[[320, 160, 0.9]]])


def test_a_frame_that_does_not_say_its_size_is_lost_not_guessed() -> None:
    rows = np.zeros(output("detection", *SIZES[0]), np.float32)
    said = "model's input was 0x0, and the model has 64x64, 32x64, 64x32"
    with reading(DetectionPostprocess, "detection") as run, pytest.raises(FrameLostError) as lost:
        run.feed({"raw": {"out": rows}}, FrameHeader(width=640, height=640))
    assert said in str(lost.value)


def test_one_size_cannot_be_given_for_several() -> None:
    with (
        pytest.raises(UserError, match="`size:` is given, and the model runs in 3 shapes"),
        reading(DetectionPostprocess, "detection", size=(64, 64)),
    ):
        pass

from __future__ import annotations

import logging
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgert.errors import FrameLostError, UserError
from edgert.models.describe import ImageInput, ModelDescription, SegmentationHead
from edgert.pipeline.adapter import read_as
from edgert.stages.base import PlanContext
from edgert.stages.geometry import map_point
from edgert.stages.harness import opened
from edgert.stages.postprocess.segmentation import SegmentationOptions, SegmentationPostprocess
from edgert.stages.preprocess.geometry import RESIZES, place
from edgert.tensor import FrameHeader, PortSpec, TensorSpec

LABELS = ("background", "cat", "dog")
SIZE = (24, 16)
CLASSES = SegmentationHead("classes", {"mask": "out"}, LABELS)
SCORES = SegmentationHead("scores", {"mask": "out"}, LABELS)
PERSON = SegmentationHead("probability", {"mask": "out"}, ("background", "person"))


class Table:
    def __init__(self, head: SegmentationHead | None) -> None:
        self._head = head

    def describe(self, model: str, shapes: Any) -> ModelDescription:
        inputs = {"image": TensorSpec("u8", (1, SIZE[1], SIZE[0], 3))}
        image = ImageInput("image", "NHWC", "RGB", "letterbox-centre")
        return ModelDescription(
            "net", "net.tflite", "", "tflite", inputs, {}, image=image, segmentation=self._head
        )


def context(head: SegmentationHead | None) -> PlanContext:
    return PlanContext("masks", "stage 'masks'", ".", Table(head), {})


def port(dtype: str, shape: tuple[int, ...]) -> PortSpec:
    return PortSpec("tensors", {"out": TensorSpec(dtype, shape)}, attributes={"model": "net"})


def run(head: SegmentationHead, raw: np.ndarray, header: FrameHeader, **settings: Any):
    names = {"int64": "i64", "uint8": "u8", "float32": "f32"}
    inputs = {"raw": port(names[raw.dtype.name], raw.shape)}
    with opened(SegmentationPostprocess, settings, inputs, context(head)) as stage:
        found = stage.feed({"raw": {"out": raw}}, header)["segmentation"]
        return found.tensors["mask"].copy(), found.header


def whole() -> FrameHeader:
    return FrameHeader(width=SIZE[0], height=SIZE[1])


@given(
    st.sampled_from(RESIZES),
    st.tuples(st.integers(1, 3000), st.integers(1, 3000)),
    st.sampled_from([1, 2, 4]),
)
def test_the_mask_is_the_frame_without_the_border(resize, size, coarse) -> None:
    placed = place(resize, size, SIZE)
    raw = np.zeros((1, SIZE[1], SIZE[0]), np.uint8)
    raw[0, placed.top :, placed.left :][: placed.height, : placed.width] = 1
    raw = raw[:, ::coarse, ::coarse]
    header = FrameHeader(width=size[0], height=size[1], transform=placed.to_source)
    mask, after = run(CLASSES, raw, header)
    corners = [map_point(after.transform, 0, 0), map_point(after.transform, *mask.shape[::-1])]
    if coarse == 1:
        assert mask.all()
        np.testing.assert_allclose(corners, [(0, 0), size], atol=1e-6 * max(size))
    else:  # a coarse grid covers the frame, and less than one of its pixels more
        grown = np.array(after.transform)[[0, 4]]
        assert (np.array(corners[0]) < 1e-3).all()
        assert (np.array(corners[0]) > -grown).all()
        assert (np.array(corners[1]) > np.array(size) - 1e-3 * grown).all()


@pytest.mark.parametrize("layout", ["NHWC", "NCHW"])
def test_the_best_score_names_the_class(layout) -> None:
    scores = np.random.default_rng(0).random((1, *SIZE[::-1], 3), np.float32)
    raw = scores if layout == "NHWC" else scores.transpose(0, 3, 1, 2)
    mask, _ = run(SCORES, np.ascontiguousarray(raw), whole())
    np.testing.assert_array_equal(mask, scores[0].argmax(2))


def test_a_probability_is_compared_with_the_threshold() -> None:
    raw = np.full((1, *SIZE[::-1], 1), 0.6, np.float32)
    raw[0, 0, :4, 0] = (0.69, 0.7, 1, np.nan)
    mask, _ = run(PERSON, raw, whole(), threshold=0.7)
    assert mask[0, :4].tolist() == [0, 1, 1, 0]
    assert mask.sum() == 2


def test_a_class_without_a_label_is_told_once_and_left_out(caplog) -> None:
    raw = np.ones((1, *SIZE[::-1]), np.int64)
    raw[0, 0, :3] = (3, 256, -1)
    with caplog.at_level(logging.WARNING):
        mask, _ = run(CLASSES, raw, whole())
    assert mask[0, :4].tolist() == [0, 0, 0, 1]
    assert "the model gives class 3 and there are 3 labels" in caplog.text


@pytest.mark.parametrize(
    ("transform", "said"),
    [((0, 1.0, 0, -1.0, 0, 0), "was turned"), ((1.0, 0, 500.0, 0, 1.0, 0), "shows nothing")],
)
def test_a_mask_that_cannot_be_placed_is_lost(transform, said) -> None:
    raw = np.zeros((1, *SIZE[::-1]), np.uint8)
    with pytest.raises(FrameLostError, match=said):
        run(CLASSES, raw, whole()._replace(transform=transform))


@pytest.mark.parametrize(
    ("dtype", "shape", "head", "settings", "said"),
    [
        ("i64", (1, 4, 4), None, {}, "nothing is known of how the model's outputs become a mask"),
        ("f32", (1, 4, 4), CLASSES, {}, "output 'out' is f32[1,4,4]; family classes with 3 labels"),
        ("f32", (1, 4, 4, 2), SCORES, {}, "gives [1,H,W,3] or [1,3,H,W] of f16 or f32 or f64"),
        ("f32", (1, 4, 4, 3), PERSON, {}, "output 'out' is f32[1,4,4,3]; family probability"),
        ("f32", (1, 4, 4), CLASSES, {"family": "probability"}, "takes exactly 2"),
        ("u8", (1, 4, 4), CLASSES, {"tensors": {"x": "out"}}, "it is not known which output"),
        ("u8", (1, 4, 4), CLASSES, {"labels": ["a"] * 300}, "takes at most 256"),
    ],
)
def test_what_does_not_fit_is_refused(dtype, shape, head, settings, said) -> None:
    options = read_as(SegmentationOptions, settings)
    with pytest.raises(UserError) as caught:
        SegmentationPostprocess.plan(options, {"raw": port(dtype, shape)}, context(head))
    assert said in str(caught.value)

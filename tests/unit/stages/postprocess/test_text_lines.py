from __future__ import annotations

from typing import Any

import cv2
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgert.errors import UserError
from edgert.models.describe import ImageInput, LinesHead, ModelDescription
from edgert.stages.base import PlanContext
from edgert.stages.harness import opened
from edgert.stages.postprocess.db import clockwise, find_lines
from edgert.stages.postprocess.text_lines import (
    TextLinesOptions,
    TextLinesPostprocess,
    reading_order,
)
from edgert.tensor import FrameHeader, PortSpec, TensorSpec

HEAD = LinesHead("db", {"probability": "map"})
HEIGHT, WIDTH = 160, 200
MIDDLE = np.array([100, 80])


class Table:
    def __init__(self, head: LinesHead | None) -> None:
        self._head = head

    def describe(self, model: str, shapes: Any) -> ModelDescription:
        inputs = {"x": TensorSpec("f32", (1, 3, HEIGHT, WIDTH))}
        image = ImageInput("x", "NCHW", "BGR", "letterbox-top-left")
        return ModelDescription(
            "net", "n.onnx", "", "onnx", inputs, {}, image=image, lines=self._head
        )


def context(head: LinesHead | None = HEAD) -> PlanContext:
    return PlanContext("lines", "stage 'lines'", ".", Table(head), {})


def port(shape: tuple[int, ...] = (1, 1, HEIGHT, WIDTH), dtype: str = "f32") -> PortSpec:
    return PortSpec("tensors", {"map": TensorSpec(dtype, shape)}, attributes={"model": "net"})


def run(probability: np.ndarray, header: FrameHeader, **options: Any) -> dict[str, np.ndarray]:
    raw = {"map": probability[None, None]}
    inputs = {"raw": port(raw["map"].shape)}
    with opened(TextLinesPostprocess, options, inputs, context()) as stage:
        out = stage.feed({"raw": raw}, header)["detections"]
        return {name: array.copy() for name, array in out.tensors.items()}


def blocks(*boxes: tuple[int, int, int, int, float]) -> np.ndarray:
    found = np.zeros((HEIGHT, WIDTH), np.float32)
    for x1, y1, x2, y2, probability in boxes:
        found[y1:y2, x1:x2] = probability
    return found


@given(st.integers(20, 80), st.integers(20, 80), st.integers(4, 60), st.integers(4, 60))
def test_an_upright_region_grows_by_area_over_perimeter(left, top, width, height) -> None:
    found = find_lines(blocks((left, top, left + width, top + height, 0.9)), 0.3, 0.5, 1.5)
    more = width * height * 1.5 / (2 * (width + height))
    wanted = (left - more, top - more, left + width + more, top + height + more)
    ((corners,), (score,)) = found
    assert (*corners.min(0), *corners.max(0)) == pytest.approx(wanted, abs=1e-3)
    assert score == pytest.approx(0.9)


@settings(max_examples=50)
@given(st.floats(-0.6, 0.6), st.floats(30, 60), st.floats(6, 12))
def test_a_turned_region_is_found_as_it_lies(angle, half, up) -> None:
    along = np.array([np.cos(angle), np.sin(angle)])
    down = np.array([-along[1], along[0]])
    ends = np.array(
        [
            -half * along - up * down,
            half * along - up * down,
            half * along + up * down,
            -half * along + up * down,
        ]
    )
    region = np.zeros((HEIGHT, WIDTH), np.uint8)
    inner = np.round((ends + MIDDLE - 0.5) * 16).astype(np.int32)
    cv2.fillPoly(region, [inner], 1, shift=4)
    (corners,) = find_lines(region.astype(np.float32), 0.3, 0.5, 0).corners
    # OpenCV fills pixels whose border is touched, too.
    np.testing.assert_allclose(corners, ends + MIDDLE, atol=2.5)


def test_lines_are_told_in_pixels_of_the_frame_and_cut_to_it() -> None:
    header = FrameHeader(width=300, height=320, transform=(2.0, 0, 0, 0, 2.0, 0))
    out = run(blocks((0, 10, 140, 20, 0.8), (10, 60, 60, 80, 0.9)), header, unclip=0)
    assert out["boxes"].tolist() == [pytest.approx([0, 20, 280, 40]), [20, 120, 120, 160]]
    assert out["corners"][1].tolist() == [[20, 120], [120, 120], [120, 160], [20, 160]]
    assert out["scores"] == pytest.approx([0.8, 0.9])
    wide = run(blocks((100, 10, 200, 20, 0.8)), header, unclip=0)
    assert wide["boxes"].tolist() == [pytest.approx([200, 20, 300, 40])]


def test_noise_weak_regions_and_what_is_no_number_are_left_out() -> None:
    picture = blocks((10, 10, 60, 12, 0.9), (10, 40, 60, 60, 0.45), (10, 100, 60, 120, np.nan))
    assert len(run(picture, FrameHeader(width=WIDTH, height=HEIGHT))["boxes"]) == 0


def test_the_best_lines_are_kept_and_stay_in_reading_order() -> None:
    picture = blocks((10, 10, 60, 20, 0.7), (10, 50, 60, 60, 0.8), (10, 90, 60, 100, 0.9))
    out = run(picture, FrameHeader(width=WIDTH, height=HEIGHT), max_lines=2, unclip=0)
    assert out["scores"] == pytest.approx([0.8, 0.9])
    assert out["boxes"][0, 1] < out["boxes"][1, 1]


def test_lines_side_by_side_are_read_from_the_left() -> None:
    def line(x: float, y: float) -> list[list[float]]:
        return [[x, y], [x + 50, y], [x + 50, y + 10], [x, y + 10]]

    corners = np.array([line(60, 2), line(0, 30), line(0, 5), line(120, 0), line(60, 30)])
    assert reading_order(corners) == [2, 0, 3, 1, 4]
    assert reading_order(np.zeros((0, 4, 2))) == []


@given(st.permutations([(0, 0), (10, 1), (9, 6), (0.5, 5)]))
def test_corners_go_clockwise_from_the_upper_left(corners) -> None:
    ordered = clockwise(np.array(corners, np.float64)).tolist()
    assert ordered == [[0, 0], [10, 1], [9, 6], [0.5, 5]]


@pytest.mark.parametrize(
    ("raw", "head", "said"),
    [
        (port(), None, "nothing is known of how the model's outputs become lines of text"),
        (port((1, 2, 4, 4)), HEAD, "output 'map' is f32[1,2,4,4], and a map f32[1,1,H,W]"),
        (port(dtype="u8"), HEAD, "output 'map' is u8[1,1,160,200], and a map"),
    ],
)
def test_what_does_not_fit_is_refused(raw, head, said) -> None:
    with pytest.raises(UserError) as caught:
        TextLinesPostprocess.plan(TextLinesOptions(), {"raw": raw}, context(head))
    assert said in str(caught.value)

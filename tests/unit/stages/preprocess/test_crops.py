from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgert.errors import UserError
from edgert.models.describe import ImageInput, ModelDescription
from edgert.pipeline.adapter import read_as
from edgert.stages.base import PlanContext
from edgert.stages.harness import opened
from edgert.stages.infer_options import InferOptions
from edgert.stages.item_session import ITEMS
from edgert.stages.preprocess.crops import CropsOptions, CropsPreprocess
from edgert.stages.preprocess.quad import corners_of, flat_size, grow, turn_if_tall
from edgert.tensor import FrameHeader, PortSpec, TensorSpec, image_port

IMAGE = image_port(512, 512, ("i420", "gray8", "bgr24"))
GREY = ImageInput("x", "NHWC", "GRAY", "stretch")
COLOUR = ImageInput("x", "NCHW", "BGR", "stretch")
SIZE = (160, 120)


class Table:
    def __init__(self, image: ImageInput, spec: TensorSpec) -> None:
        self._image, self._spec = image, spec

    def describe(self, model: str, shapes: Any) -> ModelDescription:
        return ModelDescription(
            "net", "net.onnx", "", "onnx", {"x": self._spec}, {}, image=self._image
        )


def context(image: ImageInput, spec: TensorSpec) -> PlanContext:
    stages = {"reader": InferOptions(model="net")}
    return PlanContext("crops", "stage 'crops'", ".", Table(image, spec), stages)


def detections(most: int = 10, *, corners: bool = True) -> PortSpec:
    tensors = {
        "boxes": TensorSpec("f32", (most, 4)),
        "scores": TensorSpec("f32", (most,)),
        "classes": TensorSpec("i32", (most,)),
        "corners": TensorSpec("f32", (most, 4, 2)),
    }
    if not corners:
        del tensors["corners"]
    return PortSpec("detections", tensors, attributes={"labels": ["text"]})


def cropping(
    image: ImageInput, dtype: str, shape: tuple[int, ...], *, corners: bool = True, **settings: Any
) -> Any:
    inputs = {"image": IMAGE, "detections": detections(corners=corners)}
    where = context(image, TensorSpec(dtype, shape))
    return opened(CropsPreprocess, {"for": "reader", **settings}, inputs, where)


def found(corners: Any) -> dict[str, np.ndarray]:
    corners = np.array(corners, np.float32).reshape(-1, 4, 2)
    count = len(corners)
    boxes = np.concatenate((corners.min(1), corners.max(1)), axis=1)
    scores = np.linspace(0.9, 0.1, count, dtype=np.float32)
    return {
        "boxes": boxes,
        "scores": scores,
        "classes": np.zeros(count, np.int32),
        "corners": corners,
    }


def slope() -> np.ndarray:
    """A grey picture whose level at the edge coordinates (x, y) is x / 2 + y."""
    x, y = np.meshgrid(np.arange(SIZE[0]) + 0.5, np.arange(SIZE[1]) + 0.5)
    return (x / 2 + y).round().astype(np.uint8)


def header(**more: Any) -> FrameHeader:
    return FrameHeader(width=SIZE[0], height=SIZE[1], pixel_format="gray8", **more)


turned = st.tuples(
    st.floats(60, 100), st.floats(50, 70), st.floats(12, 40), st.floats(10, 30), st.floats(-3, 3)
)


def quad_of(middle_x: float, middle_y: float, half: float, up: float, angle: float) -> np.ndarray:
    along = np.array([np.cos(angle), np.sin(angle)])
    down = np.array([-along[1], along[0]])
    middle = np.array([middle_x, middle_y])
    return np.stack(
        [middle + a * half * along + b * up * down for a, b in ((-1, -1), (1, -1), (1, 1), (-1, 1))]
    )


@given(turned)
def test_a_turned_rectangle_is_laid_flat(shape) -> None:
    """Each pixel of the crop has the level that the picture has where it comes from."""
    quad = quad_of(*shape)
    with cropping(GREY, "u8", (1, 24, 32, 1)) as run:
        feed = {"image": {"y": slope()}, "detections": found([quad])}
        crop = run.feed(feed, header())["tensor"].tensors["x"][0, ..., 0].astype(float)
    u = (np.arange(32) + 0.5)[None, :, None] / 32
    v = (np.arange(24) + 0.5)[:, None, None] / 24
    at = quad[0] + u * (quad[1] - quad[0]) + v * (quad[3] - quad[0])
    inside = ((at > 1) & (at < np.array(SIZE) - 1)).all(2)
    assert np.abs(crop - (at[..., 0] / 2 + at[..., 1]))[inside].max() < 1.6


def test_there_is_a_row_for_each_up_to_the_most_and_the_rest_is_told() -> None:
    quads = [quad_of(40 + 5 * n, 60, 20, 10, 0) for n in range(5)]
    with cropping(GREY, "u8", (1, 8, 16, 1), max_crops=3) as run:
        for count, kept in ((5, 3), (0, 0), (3, 3), (1, 1)):
            feed = {"image": {"y": slope()}, "detections": found(quads[:count])}
            out = run.feed(feed, header(sequence=count))
            assert out["tensor"].tensors["x"].shape == (kept, 8, 16, 1)
            assert out["detections"].metadata == {"left_out": count - kept}
            for name, array in found(quads[:count]).items():
                np.testing.assert_array_equal(out["detections"].tensors[name], array[:kept])


def test_at_the_end_it_says_how_many_were_left_out(caplog: pytest.LogCaptureFixture) -> None:
    quads = [quad_of(40 + 5 * n, 60, 20, 10, 0) for n in range(5)]
    with cropping(GREY, "u8", (1, 8, 16, 1), max_crops=3) as run:
        for count in (5, 4, 3):
            run.feed(
                {"image": {"y": slope()}, "detections": found(quads[:count])},
                header(sequence=count),
            )
    said = "left out: 3 detections of 2 frames; there is room for 3 (max_crops)"
    assert [record.getMessage() for record in caplog.records] == [f"stage 'crops': {said}"]


@pytest.mark.parametrize("pixel_format", ["bgr24", "i420"])
def test_colours_and_the_border_of_boxes(pixel_format) -> None:
    """Two upright boxes, in a letterbox: each has its colour, and the border stays."""
    y, u, v = (np.full(size, 128, np.uint8) for size in ((120, 160), (60, 80), (60, 80)))
    y[:, 80:], u[:, 40:], v[:, 40:] = 81, 90, 240  # red on the right
    bgr = np.full((120, 160, 3), 130, np.uint8)
    bgr[:, 80:] = (0, 0, 255)
    planes = {"bgr": bgr} if pixel_format == "bgr24" else {"y": y, "u": u, "v": v}
    boxes = np.array([[100, 20, 140, 40], [10, 20, 50, 100]], np.float32)
    things = {"boxes": boxes, "scores": np.ones(2, np.float32), "classes": np.zeros(2, np.int32)}
    image = ImageInput("x", "NCHW", "BGR", "letterbox-centre", pad=7)
    with cropping(image, "u8", (1, 3, 32, 32), corners=False) as run:
        feed = {"image": planes, "detections": things}
        for _ in range(2):
            out = run.feed(feed, header()._replace(pixel_format=pixel_format))
            red, grey = out["tensor"].tensors["x"].astype(int)
    assert np.abs(red[:, 8:24].reshape(3, -1).T - (0, 0, 255)).max() < 4
    assert (red[:, :8] == 7).all()
    assert np.abs(grey[:, :, 8:24] - 130).max() < 4
    assert (grey[:, :, :8] == 7).all()


def test_corners_find_their_place_on_a_picture_that_was_scaled_down() -> None:
    twice = header(transform=(2.0, 0, 0, 0, 2.0, 0))._replace(width=320, height=240)
    quad = quad_of(80, 60, 16, 12, 0)
    with cropping(GREY, "u8", (1, 24, 32, 1)) as run:
        picture = {"image": {"y": slope()}}
        plain = run.feed({**picture, "detections": found([quad])}, header())
        plain = plain["tensor"].tensors["x"].copy()
        there = {name: array.copy() for name, array in found([quad * 2]).items()}
        scaled = run.feed({**picture, "detections": there}, twice)["tensor"].tensors["x"]
        np.testing.assert_array_equal(scaled, plain)


def test_floats_are_written_where_the_model_converts_nothing() -> None:
    image = ImageInput("x", "NHWC", "GRAY", "stretch", scale=1 / 255)
    with cropping(image, "f32", (1, 8, 8, 1), convert="here") as run:
        feed = {
            "image": {"y": np.full((120, 160), 51, np.uint8)},
            "detections": found([quad_of(80, 60, 20, 20, 0)]),
        }
        assert run.feed(feed, header())["tensor"].tensors["x"] == pytest.approx(0.2)


def test_the_plan_says_how_many_rows_and_who_converts() -> None:
    image = ImageInput("x", "NCHW", "BGR", "fit-height", scale=1 / 255)
    where = context(image, TensorSpec("f32", (1, 3, 48, 320)))
    options = read_as(CropsOptions, {"for": "reader", "max_crops": 16})
    ports = CropsPreprocess.plan(options, {"image": IMAGE, "detections": detections(10)}, where)
    assert ports["tensor"].tensors == {"x": TensorSpec("u8", (10, 3, 48, 320))}
    assert ports["tensor"].attributes[ITEMS] == 10
    assert ports["tensor"].attributes["byte_inputs"]["x"]["scale"] == 1 / 255
    assert ports["detections"].tensors == detections(10).tensors
    assert ports["detections"].attributes == {"labels": ["text"]}


def test_an_interpolation_that_crops_have_not_is_refused() -> None:
    options = read_as(CropsOptions, {"for": "reader", "interpolation": "area"})
    where = context(GREY, TensorSpec("u8", (1, 8, 8, 1)))
    with pytest.raises(UserError, match="'area' is not for crops"):
        CropsPreprocess.plan(options, {"image": IMAGE, "detections": detections()}, where)


def test_a_tall_line_lies_on_its_side() -> None:
    (tall,) = corners_of(np.array([[0.0, 0, 10, 40]]))
    assert turn_if_tall(tall).tolist() == [[10, 0], [10, 40], [0, 40], [0, 0]]
    assert flat_size(turn_if_tall(tall)) == (40, 10)
    (wide,) = corners_of(np.array([[0.0, 0, 40, 10]]))
    assert turn_if_tall(wide) is wide


def test_a_margin_grows_on_every_side() -> None:
    corners = corners_of(np.array([[10.0, 20, 30, 60]]))
    assert grow(corners, 0.5).tolist() == corners_of(np.array([[0.0, 0, 40, 80]])).tolist()

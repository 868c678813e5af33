"""A model prepared for several sizes: in which one a picture is written, and what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgert.errors import UserError
from edgert.models.describe import ImageInput
from edgert.pipeline.adapter import read_as
from edgert.stages.base import PlanContext, StageOptions
from edgert.stages.geometry import map_point
from edgert.stages.harness import opened
from edgert.stages.infer_options import InferOptions
from edgert.stages.preprocess.crops import CropsPreprocess
from edgert.stages.preprocess.geometry import RESIZES, choose
from edgert.stages.preprocess.image import ImagePreprocess
from edgert.tensor import FrameHeader, PortSpec, TensorSpec, image_port

from .conftest import Table, describe

FOUR = ((640, 640), (320, 640), (640, 320), (320, 320))
SIDE = st.integers(1, 4096)
SIZES = st.lists(st.tuples(SIDE, SIDE), min_size=1, max_size=9, unique=True)
SEVERAL = {"images": [1, 3, [32, 64], [32, 64]]}


@pytest.mark.parametrize(
    ("picture", "sizes", "chosen"),
    [
        ((1280, 720), FOUR, (640, 320)),  # the least border
        ((720, 1280), FOUR, (320, 640)),
        ((500, 500), FOUR, (640, 640)),  # 320x320 has no border either, and would shrink it
        ((300, 310), FOUR, (320, 320)),  # which here holds it
        ((4000, 4000), FOUR, (640, 640)),  # all shrink it: the largest
        ((768, 576), FOUR, (640, 640)),
        ((640, 360), ((1280, 736), (640, 384)), (640, 384)),  # a little border is worth it
        ((4000, 100), FOUR, (640, 320)),
        ((1, 1), FOUR, (320, 320)),
    ],
)
def test_the_size_for_a_picture(picture, sizes, chosen) -> None:
    assert choose(picture, sizes, "letterbox-top-left") == chosen
    assert choose(picture, sizes, "stretch") == chosen
    assert choose(picture, tuple(reversed(sizes)), "letterbox-centre") == chosen


def test_a_line_is_squeezed_only_where_no_size_is_wide_enough() -> None:
    sizes = ((640, 48), (320, 48))
    assert choose((100, 48), sizes, "fit-height") == (320, 48)
    assert choose((330, 48), sizes, "fit-height") == (640, 48)
    assert choose((9000, 48), sizes, "fit-height") == (640, 48)


@given(st.tuples(SIDE, SIDE), SIZES, st.sampled_from(RESIZES))
def test_a_size_of_the_picture_itself_is_always_chosen(picture, sizes, resize) -> None:
    assert choose(picture, tuple(sizes), resize) in sizes
    assert choose(picture, (*sizes, picture), resize) == picture


@given(st.tuples(SIDE, SIDE), SIZES)
def test_the_border_is_never_much_more_than_it_has_to_be(picture, sizes) -> None:
    def border(size):
        scale = min(size[0] / picture[0], size[1] / picture[1])
        return 1 - picture[0] * picture[1] * scale**2 / (size[0] * size[1])

    least = min(map(border, sizes))
    assert border(choose(picture, tuple(sizes), "letterbox-centre")) <= least + 0.1 + 1e-9


def planning(shape: dict[str, Any], inputs: Any = None) -> PlanContext:
    described = describe(
        inputs or TensorSpec("f32", (1, 3, 64, 64)),
        ImageInput("images", "NCHW", "RGB", "letterbox-centre"),
    )
    stages: dict[str, StageOptions] = {"detector": InferOptions(model="net", shape=shape)}
    return PlanContext("prepare", "stage 'prepare'", ".", Table({"net": described}), stages)


def prepared(shape: dict[str, Any] = SEVERAL, **settings: Any):
    inputs = {"image": image_port(256, 256, ("bgr24",))}
    context = planning(shape)
    return opened(ImagePreprocess, {"for": "detector", **settings}, inputs, context)


@pytest.mark.parametrize("convert", ["here", "in-model"])
def test_each_picture_is_written_as_if_its_size_were_the_only_one(convert) -> None:
    """In the same slot, so that nothing of the frame before it is left, the border least of all."""
    rng = np.random.default_rng(1)
    with prepared(convert=convert) as run:
        sizes = [(64, 32), (20, 60), (100, 50), (50, 100), (64, 64), (31, 30), (60, 20), (20, 60)]
        for width, height in sizes:
            picture = {"bgr": rng.integers(0, 256, (height, width, 3), np.uint8)}
            header = FrameHeader(width=width, height=height, pixel_format="bgr24")
            found = run.feed({"image": picture}, header)["tensor"]
            size = (found.header.input_width, found.header.input_height)
            fixed = {"images": [1, 3, size[1], size[0]]}
            shape = found.tensors["images"].shape
            assert shape == tuple(fixed["images"])
            with opened(
                ImagePreprocess,
                {"for": "detector", "convert": convert},
                {"image": image_port(256, 256, ("bgr24",))},
                planning(fixed, TensorSpec("f32", shape)),
            ) as alone:
                wanted = alone.feed({"image": picture}, header)["tensor"]
                np.testing.assert_array_equal(found.tensors["images"], wanted.tensors["images"])
                assert found.header == wanted.header
            middle = map_point(found.header.transform, size[0] / 2, size[1] / 2)
            assert middle == pytest.approx((width / 2, height / 2), abs=1)


def test_slots_have_room_for_the_largest_and_say_all() -> None:
    options = read_as(ImagePreprocess.options, {"for": "detector"})
    port = ImagePreprocess.plan(options, {"image": image_port(9, 9)}, planning(SEVERAL))["tensor"]
    assert port.tensors == {"images": TensorSpec("u8", (1, 3, 64, 64))}
    assert list(port.attributes["sizes"]) == [(64, 64), (32, 64), (64, 32), (32, 32)]


@pytest.mark.parametrize(
    ("shape", "settings", "said"),
    [
        (
            {"images": [1, [1, 3], 64, 64]},
            {},
            "'shape' names 2 sizes for dimension 1 of the input 'images' of model 'net' of stage "
            "'detector'. Only height and width of a picture may have several.",
        ),
        (
            SEVERAL,
            {"size": (64, 64)},
            "`size:` is given, and 'shape' names several sizes of the input 'images' of model "
            "'net' of stage 'detector'. Leave `size:` out.",
        ),
    ],
)
def test_what_cannot_be_written_is_refused(shape, settings, said) -> None:
    with pytest.raises(UserError) as refused, prepared(shape, **settings):
        pass
    assert str(refused.value) == f"stage 'prepare': {said}"


def test_crops_are_all_of_one_size() -> None:
    boxes = {"boxes": TensorSpec("f32", (4, 4))}
    inputs = {"image": image_port(9, 9), "detections": PortSpec("detections", boxes)}
    context = planning(SEVERAL)
    with (
        pytest.raises(UserError, match="takes pictures of several sizes, and crops are all of one"),
        opened(CropsPreprocess, {"for": "detector"}, inputs, context),
    ):
        pass

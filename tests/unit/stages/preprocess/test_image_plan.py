from __future__ import annotations

from typing import Any

import msgspec
import numpy as np
import pytest
from pydantic import ValidationError

from edgert.errors import UserError
from edgert.models.describe import ImageInput
from edgert.pipeline.adapter import read_as
from edgert.stages.preprocess.colour import value_table
from edgert.stages.preprocess.image import ImagePreprocess, ImagePreprocessOptions
from edgert.tensor import PortSpec, Quantisation, TensorSpec, image_port

NCHW = TensorSpec("f32", (1, 3, 416, 416))
YOLOX = ImageInput("images", "NCHW", "BGR", "letterbox-top-left")
ENOUGH = {"resize": "stretch", "colour": "RGB", "scale": 1.0}


def plan(context: Any, port: PortSpec | None = None, **settings: Any) -> PortSpec:
    options = read_as(ImagePreprocessOptions, {"for": "detector", **settings})
    return ImagePreprocess.plan(options, {"image": port or image_port(64, 48)}, context)["tensor"]


def refusal(context: Any, port: PortSpec | None = None, **settings: Any) -> str:
    with pytest.raises(UserError) as caught:
        plan(context, port, **settings)
    return str(caught.value)


def test_the_output_is_exactly_the_model_s_input(feeding) -> None:
    port = plan(feeding(NCHW, YOLOX))
    assert port.kind == "tensors"
    assert port.tensors == {"images": NCHW}


def test_options_go_before_the_model_s_metadata(feeding) -> None:
    port = plan(feeding(NCHW, YOLOX), colour="RGB", scale=0.5, pad=0)
    image = port.attributes["image"]
    assert (image["colour"], image["scale"], image["pad"]) == ("RGB", 0.5, 0)
    assert image["resize"] == "letterbox-top-left"


def test_a_model_may_be_named_without_a_stage(feeding) -> None:
    options = ImagePreprocessOptions(model="net")
    port = ImagePreprocess.plan(options, {"image": image_port(8, 8)}, feeding(NCHW, YOLOX))
    assert port["tensor"].tensors == {"images": NCHW}


@pytest.mark.parametrize(
    ("given", "missing"),
    [
        ({}, "Give `resize:`, `colour:`, `scale:`."),
        ({"colour": "RGB"}, "Give `resize:`, `scale:`."),
        ({"resize": "stretch", "colour": "RGB"}, "Give `scale:`."),
    ],
)
def test_exactly_the_missing_keys_are_asked_for(feeding, given, missing) -> None:
    said = refusal(feeding(NCHW), **given)
    assert said == (
        "stage 'prepare': nothing is known of how the input 'images' of model 'net' of stage "
        f"'detector' wants its picture. {missing}"
    )


@pytest.mark.parametrize(("shape", "layout"), [((1, 3, 32, 48), "NCHW"), ((1, 32, 48, 3), "NHWC")])
def test_the_layout_is_told_from_the_shape(feeding, shape, layout) -> None:
    port = plan(feeding(TensorSpec("f32", shape)), **ENOUGH)
    assert port.attributes["image"]["layout"] == layout


def test_open_sizes_are_filled_where_they_are_given(feeding) -> None:
    context = feeding(TensorSpec("f32", (None, 3, None, None)))
    assert plan(context, **ENOUGH, size=(48, 32)).tensors["images"].shape == (1, 3, 32, 48)
    said = refusal(context, **ENOUGH)
    assert "leaves its size open: f32[?,3,?,?]" in said
    assert "`shape: {images: [1, 3, 416, 416]}`" in said


@pytest.mark.parametrize(
    ("spec", "settings", "expected"),
    [
        (NCHW, {"size": (320, 320)}, "size 320x320 does not fit the input 'images'"),
        (NCHW, {"dtype": "u8"}, "dtype u8 does not fit the input 'images'"),
        (NCHW, {"colour": "GRAY"}, "f32[1,3,416,416] with 3 channels as NCHW"),
        (NCHW, {"layout": "NHWC"}, "with 416 channels as NHWC"),
        (NCHW, {"mean": (1.0, 2.0)}, "`mean:` has 2 values"),
        (NCHW, {"std": (0.0,)}, "`std:` of the input 'images'"),
        (TensorSpec("u8", (1, 3, 8, 8)), {"scale": 1 / 255}, "values from 0 to 1 do not fit"),
        (TensorSpec("i8", (1, 3, 8, 8)), {}, "values from 0 to 255 do not fit"),
        (TensorSpec("i64", (1, 3, 8, 8)), {}, "takes i64 elements"),
        (TensorSpec("f32", (4, 3, 8, 8)), {}, "a batch of 4"),
        (TensorSpec("f32", (1, 3, 8)), {}, "a picture needs four dimensions"),
        (TensorSpec("f32", (1, 3, 8, 3)), {}, "cannot be told from its shape"),
        (TensorSpec("f32", (1, 5, 8, 9)), {}, "cannot be told from its shape"),
    ],
)
def test_what_does_not_fit_is_told_with_both_ends(feeding, spec, settings, expected) -> None:
    said = refusal(feeding(spec), **{**ENOUGH, **settings})
    assert said.startswith("stage 'prepare': ")
    assert expected in said
    assert "the input 'images' of model 'net' of stage 'detector'" in said


def test_several_faults_are_told_at_once(feeding) -> None:
    said = refusal(feeding(NCHW), **ENOUGH, size=(8, 8), dtype="u8")
    assert len(said.splitlines()) == 2


def test_one_of_several_inputs_has_to_be_named(feeding) -> None:
    context = feeding({"a": NCHW, "b": TensorSpec("u8", (1, 8, 8, 3))})
    assert "Name one by `tensor:`: a, b." in refusal(context, **ENOUGH)
    assert "has no input 'c'" in refusal(context, **ENOUGH, tensor="c")
    assert list(plan(context, **ENOUGH, tensor="b").tensors) == ["b"]


def test_metadata_of_another_input_is_not_used(feeding) -> None:
    context = feeding({"images": NCHW, "b": NCHW}, YOLOX)
    assert "Give `resize:`, `colour:`, `scale:`." in refusal(context, tensor="b")


def test_the_near_miss_of_a_stage_is_named(feeding) -> None:
    said = refusal(feeding(NCHW, YOLOX), **{"for": "detectr"})
    assert said == (
        "stage 'prepare', for: there is no stage 'detectr'. Did you mean 'detector'? "
        "The file's stages: prepare, detector."
    )


def test_a_stage_without_a_model_is_refused(feeding) -> None:
    assert "runs no model" in refusal(feeding(NCHW, YOLOX), **{"for": "prepare"})


def test_strange_planes_are_refused(feeding) -> None:
    port = PortSpec("image", {"y": TensorSpec("u16", (8, 8)), "depth": TensorSpec("u8", (8, 8))})
    said = refusal(feeding(NCHW, YOLOX), port)
    assert "the image that arrives has y (u16[8,8]), depth (u8[8,8])" in said
    assert "the input 'images' of model 'net'" in said


@pytest.mark.parametrize(
    "settings",
    [{}, {"for": "a", "model": "b"}, {"for": "a", "colour": "XYZ"}, {"for": "a", "pad": 300}],
)
def test_options_that_cannot_be(settings) -> None:
    with pytest.raises(ValidationError):
        read_as(ImagePreprocessOptions, settings)


@pytest.mark.parametrize(
    ("dtype", "quantisation", "values", "black", "white"),
    [
        # As their float models: 0 to 1, -1 to 1, and each channel by itself.
        ("i8", Quantisation(1 / 255, -128), {"scale": 1 / 255}, [-128] * 3, [127] * 3),
        ("u8", Quantisation(1 / 128, 128), {"scale": 1 / 127.5, "mean": (1,)}, [0] * 3, [255] * 3),
        (
            "i8",
            Quantisation(1 / 32, 0),
            {"scale": 1 / 255, "mean": (0.5,), "std": (0.5, 0.25, 0.2)},
            [-32, -64, -80],
            [32, 64, 80],
        ),
        # Bytes that are not converted stay bytes, and so does what has no scale.
        ("u8", Quantisation(1 / 128, 128), {"scale": 1}, [0] * 3, [255] * 3),
        ("i8", None, {"scale": 1, "mean": (128,)}, [-128] * 3, [127] * 3),
    ],
)
def test_values_are_quantised_as_the_model_was(
    dtype, quantisation, values, black, white, feeding
) -> None:
    context = feeding(TensorSpec(dtype, (1, 8, 8, 3), quantisation))
    port = plan(context, resize="stretch", colour="RGB", **values)
    assert port.tensors == {"images": TensorSpec(dtype, (1, 8, 8, 3))}
    table = value_table(msgspec.convert(port.attributes["image"], ImageInput), dtype)
    table = np.broadcast_to(table, (3, 256))
    assert (table[:, 0].tolist(), table[:, 255].tolist()) == (black, white)


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"scale": 1}, "as the model had them before quantisation"),
        ({"scale": 0.5, "mean": (1, 2)}, "`mean:` has 2 values"),
        ({"scale": 0.5, "mean": (1, 2), "std": (1, 2, 3)}, "`mean:` has 2 values"),
        ({"scale": 0.5, "std": (0,)}, "has a zero"),
    ],
)
def test_values_that_a_quantised_model_cannot_have_had_are_refused(values, said, feeding) -> None:
    context = feeding(TensorSpec("i8", (1, 8, 8, 3), Quantisation(1 / 255, -128)))
    assert said in refusal(context, resize="stretch", colour="RGB", **values)

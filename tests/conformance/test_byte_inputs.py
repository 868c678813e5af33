"""Inputs given as bytes: every backend compiles the conversion into the model."""

from pathlib import Path

import numpy as np
import pytest

from edgert.backends.base import ByteInput
from edgert.backends.registry import backend, is_installed
from edgert.errors import DeviceError, ModelError
from tests import models
from tests.conformance.test_backends import every, every_real, in_flight

PICTURES = {"NCHW": (1, 3, 4, 6), "NHWC": (1, 4, 6, 3)}
CONVERSIONS = [
    {},
    {"scale": 1 / 255},
    {"mean": (127.5,)},
    {"scale": 1 / 255, "mean": (0.485, 0.456, 0.406), "std": (0.229, 0.224, 0.225)},
]


def _values(picture: np.ndarray, conversion: ByteInput) -> np.ndarray:
    last = picture if conversion.layout == "NHWC" else np.moveaxis(picture, 1, -1)
    values = (last * conversion.scale - (conversion.mean or 0)) / (conversion.std or 1)
    return values if conversion.layout == "NHWC" else np.moveaxis(values, -1, 1)


def _inferred(name: str, model: Path, x: np.ndarray, **asked: object) -> np.ndarray:
    with models.session_of(name, model, **asked) as session:
        outputs = models.arrays_for(session.outputs)
        models.infer(session, {"x": x}, outputs)
        # The copy, where there is one, is of the values that the bytes became.
        assert session.copied_bytes == models.moved(name, backend(name).signature(str(model), {}))
        return outputs["y"]


@every_real
@in_flight
@pytest.mark.parametrize("layout", PICTURES)
@pytest.mark.parametrize("numbers", CONVERSIONS)
def test_bytes_become_what_the_model_wants(
    name: str, requests: int, layout: str, numbers: dict[str, object], tmp_path: Path
) -> None:
    conversion = ByteInput(layout, **numbers)
    shape = PICTURES[layout]
    model = models.of(name).doubling(models.file(name, tmp_path), shape)
    picture = np.random.default_rng(2).integers(0, 256, shape).astype(np.uint8)
    values = _values(picture, conversion)
    wanted = _inferred(name, model, values.astype(np.float32))
    found = _inferred(name, model, picture, requests=requests, bytes={"x": conversion})
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-5 * np.abs(values).max())


@every
def test_bytes_show_in_the_session_and_not_in_the_signature(name: str, tmp_path: Path) -> None:
    model = models.of(name).convolution(models.file(name, tmp_path), ["n", 3, "h", "w"])
    shapes = {"x": [1, 3, 8, 8]}
    asked = {"shapes": shapes, "bytes": {"x": ByteInput("NCHW", 0.5)}}
    with models.session_of(name, model, **asked) as session:
        assert str(session.inputs["x"]) == "u8[1,3,8,8]"
        assert str(session.outputs["y"]) == "f32[1,256]"
        assert session.device.precision == ("replayed" if name == "emulated" else "f32")
        floats, outputs = np.zeros((1, 3, 8, 8), np.float32), models.arrays_for(session.outputs)
        with pytest.raises(DeviceError, match=r"u8\[1,3,8,8\] there and was given float32"):
            session.start({"x": floats}, outputs, pytest.fail)
    assert str(backend(name).signature(str(model), shapes).inputs["x"]) == "f32[1,3,8,8]"


@every_real
@in_flight
def test_bytes_are_read_where_they_lie(name: str, requests: int, tmp_path: Path) -> None:
    model = models.of(name).doubling(models.file(name, tmp_path), (1, 1, 2, 3))
    asked = {"requests": requests, "bytes": {"x": ByteInput("NCHW", mean=(1.0,))}}
    with models.session_of(name, model, **asked) as session:
        seen = [np.zeros((1, 1, 2, 3), np.uint8) for _ in range(3)]
        for array in seen:
            array.flags.writeable = False
        outputs = models.arrays_for(session.outputs)
        for turn in range(9):
            array = seen[turn % 3]
            array.flags.writeable = True
            array[:] = 20 * turn
            array.flags.writeable = False
            models.infer(session, {"x": array}, outputs)
            assert (outputs["y"] == 2 * (20 * turn - 1)).all()
        own = backend(name).signature(str(model), {})
        assert session.copied_bytes == models.moved(name, own, 9)


@pytest.mark.skipif(not is_installed("emulated"), reason="emulated is not installed")
@pytest.mark.parametrize("from_file", [False, True])
def test_an_emulated_device_replays_the_same_for_bytes(from_file: bool, tmp_path: Path) -> None:
    model = models.convolution(tmp_path / "m.onnx", [1, 3, 4, 6])
    options = {}
    if from_file:
        options = {"input": str(tmp_path / "x.npy")}
        np.save(options["input"], np.random.default_rng(3).random((1, 3, 4, 6), np.float32))
    x = np.zeros((1, 3, 4, 6), np.float32)
    wanted = _inferred("emulated", model, x, options=options)
    asked = {"options": options, "bytes": {"x": ByteInput("NCHW")}}
    found = _inferred("emulated", model, x.astype(np.uint8), **asked)
    np.testing.assert_allclose(found, wanted, rtol=1e-5)


@every
def test_other_inputs_stay_as_they_are(name: str, tmp_path: Path) -> None:
    model = models.of(name).blending(models.file(name, tmp_path))
    with models.session_of(name, model, bytes={"a": ByteInput("NCHW")}) as session:
        assert [str(spec) for spec in session.inputs.values()] == ["f32[1,1,2,2]", "u8[1,1,2,2]"]
        assert list(session.inputs) == ["b", "a"]
        a, b = np.full((1, 1, 2, 2), 200, np.uint8), np.full((1, 1, 2, 2), 0.5, np.float32)
        outputs = models.arrays_for(session.outputs)
        models.infer(session, {"a": a, "b": b}, outputs)
        if name != "emulated":
            assert (outputs["y"] == 199.5).all()


@every_real
def test_bytes_reach_half_floats(name: str, tmp_path: Path) -> None:
    model = models.of(name).doubling(models.file(name, tmp_path), (1, 1, 2, 3), "f16")
    x = np.full((1, 1, 2, 3), 200, np.uint8)
    found = _inferred(name, model, x, bytes={"x": ByteInput("NCHW", 0.25, (1.0,), (2.0,))})
    assert found.dtype == np.float16
    assert (found == 49).all()


@every
@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"z": ByteInput("NCHW")}, "it has no input 'z'"),
        ({"x": ByteInput("HWC")}, "as HWC cannot become its input 'x'"),
        ({"x": ByteInput("NCHW", mean=(1.0, 2.0))}, "2 values are given for the channels"),
    ],
)
def test_bytes_that_cannot_become_an_input_are_refused(
    name: str, given: dict[str, ByteInput], said: str, tmp_path: Path
) -> None:
    model = models.of(name).doubling(models.file(name, tmp_path), (1, 3, 2, 2))
    with pytest.raises(ModelError, match=said), models.session_of(name, model, bytes=given):
        pass


@every
def test_bytes_do_not_become_whole_numbers(name: str, tmp_path: Path) -> None:
    model = models.of(name).doubling(models.file(name, tmp_path), (1, 3, 2, 2), "i32")
    with (
        pytest.raises(ModelError, match=r"cannot become its input 'x', which is i32\[1,3,2,2\]"),
        models.session_of(name, model, bytes={"x": ByteInput("NCHW")}),
    ):
        pass

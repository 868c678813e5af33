import numpy as np
import pytest

from edgert.errors import MediaError
from edgert.stages.source.normalise import normalise
from edgert.transport.address import Array

GREY = np.arange(12, dtype=np.uint8).reshape(3, 4)
BGR = np.arange(36, dtype=np.uint8).reshape(3, 4, 3)


@pytest.mark.parametrize(
    ("array", "expected"),
    [
        (GREY, np.dstack([GREY] * 3)),
        (GREY[..., None], np.dstack([GREY] * 3)),
        (np.dstack([GREY, np.zeros_like(GREY)]), np.dstack([GREY] * 3)),
        (BGR, BGR),
        (np.dstack([BGR, np.zeros_like(GREY)]), BGR),
        (BGR.astype(np.uint16) * 257, BGR),
        ((BGR / 255).astype(np.float32), BGR),
        (BGR / 255, BGR),
        (np.array([[True, False]]), [[[255] * 3, [0] * 3]]),
    ],
    ids=["HW", "HW1", "HW2", "HW3", "HW4", "u16", "f32", "f64", "bool"],
)
def test_every_picture_becomes_bgr_of_eight_bits(array: Array, expected: Array) -> None:
    found = normalise(array)
    assert found.dtype == np.uint8
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("channels", [3, 4])
def test_rgb_is_turned_round(channels: int) -> None:
    red = np.zeros((2, 2, channels), np.uint8)
    red[..., 0] = 255
    assert normalise(red, order="rgb")[0, 0].tolist() == [0, 0, 255]


@pytest.mark.parametrize(
    ("shape", "dtype", "expected"),
    [
        ((3, 480, 640), "uint8", "[3, 480, 640]"),
        ((2, 2, 5), "uint8", "[2, 2, 5]"),
        ((4,), "uint8", "[4]"),
        ((1, 2, 2, 3), "uint8", "[1, 2, 2, 3]"),
        ((0, 2), "uint8", "[0, 2]"),
        ((2, 2), "int32", "int32 and shape [2, 2]"),
        ((2, 2), "uint32", "uint32 and shape [2, 2]"),
        ((2, 2), "complex64", "complex64"),
    ],
)
def test_what_is_no_picture_is_refused_by_shape_and_type(
    shape: tuple[int, ...], dtype: str, expected: str
) -> None:
    with pytest.raises(MediaError) as caught:
        normalise(np.zeros(shape, dtype), "stage 'camera'")
    assert expected in str(caught.value)
    assert "stage 'camera'" in str(caught.value)
    assert caught.value.faults[0].mend


@pytest.mark.parametrize("value", [254.0, -1.0, float("nan")])
def test_floats_that_are_not_0_to_1_are_refused_not_guessed(value: float) -> None:
    with pytest.raises(MediaError, match="Scale them to 0 to 1"):
        normalise(np.full((2, 2, 3), value, np.float32))

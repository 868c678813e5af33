"""One rule for every picture that comes as an array: what becomes BGR of 8 bits, and how."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from edgert.errors import MediaError
from edgert.transport.address import Array

EXPECTED = "give [H, W] or [H, W, C] with C of 1 (grey), 2 (grey, alpha), 3 or 4 (with alpha)"
# Resampling overshoots a little; more than this is not a picture of 0 to 1.
FLOAT_TOLERANCE = 0.1


def normalise(array: Array, place: str = "image", order: str = "bgr") -> Array:
    """Return a picture as u8 [H, W, 3] in BGR; a view of ``array`` wherever that is possible.

    Grey is repeated; alpha is dropped, as OpenCV and the training of most models do. 16 bits are
    divided by 257; floats are 0 to 1; booleans are black and white.

    Args:
        array: The picture: [H, W] or [H, W, 1 to 4] of u8, u16, floats or booleans.
        place: With which an error begins.
        order: ``bgr`` or ``rgb``: the order of the colours in ``array``.

    Raises:
        MediaError: Its shape, its element type or its values are not those of a picture.
    """
    if array.ndim not in (2, 3) or 0 in array.shape or (array.ndim == 3 and array.shape[2] > 4):
        raise MediaError(place, f"an array of shape {list(array.shape)} is no picture", EXPECTED)
    pixels = _eight_bits(array, place)
    if pixels.ndim == 2 or pixels.shape[2] < 3:
        grey = pixels if pixels.ndim == 2 else pixels[..., 0]
        return np.broadcast_to(grey[..., None], (*grey.shape, 3))
    return pixels[..., 2::-1] if order == "rgb" else pixels[..., :3]


def _eight_bits(array: Array, place: str) -> Array:
    if array.dtype == np.uint8:
        return array
    convert = _CONVERSIONS.get(array.dtype.kind)
    if convert is None or (array.dtype.kind == "u" and array.dtype != np.uint16):
        raise MediaError(
            place,
            f"an array of {array.dtype} and shape {list(array.shape)} is no picture",
            "give uint8, uint16, floats of 0 to 1, or booleans",
        )
    return convert(array, place)


def _from_sixteen_bits(array: Array, place: str) -> Array:
    return ((array.astype(np.uint32) + 128) // 257).astype(np.uint8)


def _from_floats(array: Array, place: str) -> Array:
    low, high = float(array.min()), float(array.max())
    # Asked this way round, it also holds where one is not a number.
    is_picture = low >= -FLOAT_TOLERANCE and high <= 1 + FLOAT_TOLERANCE
    if not is_picture:
        raise MediaError(
            place,
            f"floats from {low:g} to {high:g} in an array of shape {list(array.shape)}",
            "scale them to 0 to 1",
        )
    return (np.clip(array, 0, 1) * 255 + 0.5).astype(np.uint8)


def _from_booleans(array: Array, place: str) -> Array:
    return array.astype(np.uint8) * np.uint8(255)


_CONVERSIONS: dict[str, Callable[[Array, str], Array]] = {
    "u": _from_sixteen_bits,
    "f": _from_floats,
    "b": _from_booleans,
}

"""Numbers of colour: from YUV to RGB, and from 0-255 to what a model wants to see."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from edgert.models.describe import ImageInput
from edgert.tensor import DTYPES
from edgert.transport.address import Array

# Shares of red and blue in luma, by ITU-R BT.601, BT.709 and BT.2020.
LUMA_SHARES = {"bt601": (0.299, 0.114), "bt709": (0.2126, 0.0722), "bt2020": (0.2627, 0.0593)}
CHANNELS = {"RGB": 3, "BGR": 3, "GRAY": 1}


@lru_cache(maxsize=16)
def yuv_matrix(colour_matrix: str, colour_range: str, order: str) -> Array:
    """Return f64 [3, 4]: (y, u, v, 1) to the channels of ``order`` (``RGB`` or ``BGR``), 0-255."""
    red, blue = LUMA_SHARES[colour_matrix]
    green = 1.0 - red - blue
    limited = colour_range == "limited"
    luma, black = (255 / 219, 16.0) if limited else (1.0, 0.0)
    chroma = 255 / 224 if limited else 1.0
    u_blue, v_red = 2 * (1 - blue) * chroma, 2 * (1 - red) * chroma
    weights = {
        "R": (luma, 0.0, v_red),
        "G": (luma, -u_blue * blue / green, -v_red * red / green),
        "B": (luma, u_blue, 0.0),
    }
    rows = [(*weights[c], np.dot(weights[c], (-black, -128.0, -128.0))) for c in order]
    return np.array(rows)


@lru_cache(maxsize=1)
def grey_levels() -> Array:
    """Return u8 [256]: luma of the limited range to grey, 0-255."""
    levels: Array = np.clip(np.rint((np.arange(256) - 16.0) * (255 / 219)), 0, 255)
    return levels.astype(np.uint8)


def value_table(image: ImageInput, dtype: str) -> Array:
    """Return [channels, 256]: what each level 0-255 becomes in the model's input.

    Integers are rounded and cut to what their type holds.
    """
    values = exact_values(image)
    wanted = np.dtype(DTYPES[dtype])
    if wanted.kind in "iu":
        limits = np.iinfo(wanted)
        values = [
            [min(max(round(value), limits.min), limits.max) for value in row] for row in values
        ]
    return np.array(values, wanted)


def exact_values(image: ImageInput) -> list[list[float]]:
    """Return for each channel scale, mean and std applied to each level 0-255.

    Without numpy, each function of which costs a worker some pages of its own.
    """
    channels = CHANNELS[image.colour]
    means = _for_each(image.mean or (0.0,), channels)
    stds = _for_each(image.std or (1.0,), channels)
    return [
        [(level * image.scale - mean) / std for level in range(256)]
        for mean, std in zip(means, stds, strict=True)
    ]


def _for_each(values: tuple[float, ...], channels: int) -> tuple[float, ...]:
    return values * channels if len(values) == 1 else values

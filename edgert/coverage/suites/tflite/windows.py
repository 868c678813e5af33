"""Convolutions and pools by their definition: every window of the input beside every filter."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from edgert.coverage.values import Array


def same_padding(size: int, kernel: int, stride: int) -> tuple[int, int]:
    """Return what SAME adds before and after; the odd one comes after."""
    total = max((-(-size // stride) - 1) * stride + kernel - size, 0)
    return total // 2, total - total // 2


def windows(
    image: Array,
    kernel: Sequence[int],
    strides: Sequence[int],
    padding: str,
    dilations: Sequence[int] = (),
    fill: float = 0.0,
) -> Array:
    """Return every window of [batch, place..., channels]: [batch, place..., channels, kernel...].

    Args:
        image: The input.
        kernel: Sizes of the window.
        strides: From window to window.
        padding: ``SAME`` or ``VALID``.
        dilations: From element to element of a window; 1 each if empty.
        fill: What is around the image.
    """
    dilations = dilations or [1] * len(kernel)
    reach = [(size - 1) * step + 1 for size, step in zip(kernel, dilations, strict=True)]
    if padding == "SAME":
        around = [
            same_padding(size, wide, stride)
            for size, wide, stride in zip(image.shape[1:-1], reach, strides, strict=True)
        ]
        image = np.pad(image, [(0, 0), *around, (0, 0)], constant_values=fill)
    places = tuple(range(1, image.ndim - 1))
    found = sliding_window_view(image, reach, axis=places)
    steps = [slice(None, None, step) for step in strides]
    inside = [slice(None, None, step) for step in dilations]
    return found[(slice(None), *steps, slice(None), *inside)]


def convolution(found: Array, weights: Array, bias: Array | None = None) -> Array:
    """Return the convolution of windows with weights [out, kernel..., in], in groups if fewer."""
    channels = weights.shape[-1]
    groups = found.shape[weights.ndim - 1] // channels
    each = weights.shape[0] // groups
    axis = weights.ndim - 1
    results = [
        np.tensordot(
            np.take(found, range(group * channels, (group + 1) * channels), axis),
            np.moveaxis(weights[group * each : (group + 1) * each], -1, 1),
            (range(axis, found.ndim), range(1, weights.ndim)),
        )
        for group in range(groups)
    ]
    total: Array = np.concatenate(results, -1)
    return total if bias is None else total + bias


def depthwise(found: Array, weights: Array, bias: Array) -> Array:
    """Return the depthwise convolution of windows with weights [1, h, w, in * multiplier]."""
    *_, channels, high, wide = found.shape
    filters = weights.reshape(high, wide, channels, -1)
    result = np.einsum("nhwcij,ijcm->nhwcm", found, filters)
    total: Array = result.reshape(*result.shape[:3], -1) + bias
    return total


def transposed(
    image: Array, weights: Array, size: Sequence[int], strides: Sequence[int], padding: str
) -> Array:
    """Return the transposed convolution to ``size``: every place spreads its weights."""
    batch, high, wide, _ = image.shape
    tall, broad = weights.shape[1:3]
    whole = ((high - 1) * strides[0] + tall, (wide - 1) * strides[1] + broad)
    full = np.zeros((batch, *(max(a, b) for a, b in zip(whole, size, strict=True)), len(weights)))
    for row, column in product(range(tall), range(broad)):
        rows = slice(row, row + (high - 1) * strides[0] + 1, strides[0])
        columns = slice(column, column + (wide - 1) * strides[1] + 1, strides[1])
        full[:, rows, columns] += image @ weights[:, row, column].T
    top, left = (
        max(a - b, 0) // 2 if padding == "SAME" else 0 for a, b in zip(whole, size, strict=True)
    )
    return full[:, top : top + size[0], left : left + size[1]]

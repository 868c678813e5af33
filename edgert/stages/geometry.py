"""Coordinates: affine transforms between pictures, and boxes through them.

Coordinates are those of edges, not of pixel centres: a picture of width w spans 0..w, and pixel i
covers i..i+1. Scaling a picture from w to w' pixels therefore maps x to x * w' / w without any
half-pixel term, which is exactly what ``cv2.resize`` does (it maps the centre i + 0.5 so).
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from edgert.transport.address import Array

Affine = tuple[float, float, float, float, float, float]
Size = tuple[int, int]


def compose(outer: Affine, inner: Affine) -> Affine:
    """Return the transform that applies ``inner`` first, then ``outer``."""
    a, b, c, d, e, f = outer
    p, q, r, s, t, u = inner
    return (
        a * p + b * s,
        a * q + b * t,
        a * r + b * u + c,
        d * p + e * s,
        d * q + e * t,
        d * r + e * u + f,
    )


def map_point(transform: Affine, x: float, y: float) -> tuple[float, float]:
    """Send one point through a transform."""
    a, b, c, d, e, f = transform
    return a * x + b * y + c, d * x + e * y + f


def map_points(points: Array, transform: Affine) -> Array:
    """Return points [..., 2] (x, y) sent through a transform."""
    a, b, c, d, e, f = transform
    x, y = points[..., 0], points[..., 1]
    return np.stack([a * x + b * y + c, d * x + e * y + f], axis=-1)


def map_boxes(boxes: Array, transform: Affine) -> Array:
    """Return boxes [N, 4] (x1, y1, x2, y2) sent through a transform, again upright.

    A box that the transform turns becomes the smallest upright box around it.
    """
    a, b, c, d, e, f = transform
    if b == 0 and d == 0 and a > 0 and e > 0:
        return boxes * _row(a, e, a, e) + _row(c, f, c, f)
    x = boxes[:, (0, 2, 0, 2)]
    y = boxes[:, (1, 1, 3, 3)]
    mapped_x = a * x + b * y + c
    mapped_y = d * x + e * y + f
    corners = (mapped_x.min(1), mapped_y.min(1), mapped_x.max(1), mapped_y.max(1))
    return np.stack(corners, axis=1)


def inverse(transform: Affine) -> Affine:
    """Return the transform that undoes this one; it must not flatten the picture."""
    a, b, c, d, e, f = transform
    scale = a * e - b * d
    return (
        e / scale,
        -b / scale,
        (b * f - e * c) / scale,
        -d / scale,
        a / scale,
        (d * c - a * f) / scale,
    )


def clip_boxes(boxes: Array, width: float, height: float) -> Array:
    """Return boxes cut to 0..width and 0..height; one that lies outside has no area left."""
    return np.minimum(np.maximum(boxes, 0.0), _row(width, height, width, height))


@lru_cache(maxsize=64)  # a stream's frames have one size and one transform
def _row(*numbers: float) -> Array:
    """Return f64 [4], read-only."""
    row = np.array(numbers, np.float64)
    row.flags.writeable = False
    return row

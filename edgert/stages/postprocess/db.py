"""Lines of text in a map of probabilities: the last step of differentiable binarization.

Liao et al., Real-time Scene Text Detection with Differentiable Binarization, AAAI 2020,
https://arxiv.org/abs/1911.08947: the map is cut at a threshold, each region that is left is a line
as it was shrunk for training, and grows by D = area * ratio / perimeter. We take the rectangle of
least area around the region first, as PaddleOCR does (``DBPostProcess`` with ``box_type: quad``). A
rectangle that grew with round corners and is put into a rectangle again is the one with D more on
every side.
"""

from __future__ import annotations

from typing import NamedTuple

import cv2
import numpy as np

from edgert.transport.address import Array

_LEAST_SIDE = 3.0  # pixels of the map: less is noise
_MOST_REGIONS = 1000


class Lines(NamedTuple):
    """Lines that were found.

    Attributes:
        corners: f64 [N, 4, 2], pixels of the map, from the upper left corner clockwise.
        scores: f64 [N], mean probability inside of the region's rectangle.
    """

    corners: Array
    scores: Array


def find_lines(probability: Array, pixel: float, threshold: float, unclip: float) -> Lines:
    """Return the lines of a map [H, W].

    Args:
        probability: 0-1 at each pixel.
        pixel: From where on a pixel belongs to a region.
        threshold: Lowest score of a line.
        unclip: Ratio by which regions grow.
    """
    bitmap = (probability > pixel).view(np.uint8)
    regions, _ = cv2.findContours(bitmap, cv2.RETR_LIST, cv2.CHAIN_APPROX_SIMPLE)
    corners, scores = [], []
    for region in regions[:_MOST_REGIONS]:
        middle, (width, height), angle = cv2.minAreaRect(region)
        if min(width, height) + 1 < _LEAST_SIDE:
            continue
        score = _mean_inside(probability, cv2.boxPoints((middle, (width, height), angle)))
        if not score >= threshold:
            continue
        # OpenCV's corners are centres of pixels: half a pixel is missing on every side.
        width, height = width + 1, height + 1
        more = width * height * unclip / (width + height)
        grown = cv2.boxPoints((middle, (width + more, height + more), angle))
        corners.append(clockwise(grown + 0.5))
        scores.append(score)
    return Lines(np.array(corners, np.float64).reshape(-1, 4, 2), np.array(scores, np.float64))


def clockwise(corners: Array) -> Array:
    """Return four corners from the upper left one clockwise, for a line that is read rightwards."""
    by_x = corners[np.argsort(corners[:, 0], kind="stable")]
    left, right = by_x[:2], by_x[2:]
    left, right = left[np.argsort(left[:, 1])], right[np.argsort(right[:, 1])]
    return np.stack((left[0], right[0], right[1], left[1]))


def _mean_inside(probability: Array, corners: Array) -> float:
    """Return the mean of the map inside of four corners, which are centres of pixels."""
    height, width = probability.shape
    whole = corners.round().astype(np.int32).clip(0, (width - 1, height - 1))
    (left, top), (right, bottom) = whole.min(0), whole.max(0) + 1
    mask = np.zeros((bottom - top, right - left), np.uint8)
    cv2.fillPoly(mask, [whole - (left, top)], 1)
    return float(cv2.mean(probability[top:bottom, left:right], mask)[0])

"""Takes one four-cornered part of a picture and lays it flat."""

from __future__ import annotations

import cv2
import numpy as np

from edgert.stages.geometry import Size
from edgert.transport.address import Array

TALL = 1.5  # a crop that is so many times as high as wide is a line of text written downwards


class QuadSampler:
    """Fills arrays with the part of each plane that lies between four corners.

    A plane of half the picture's size (chroma) has the corners at half the distance, so that one
    aim serves all planes of a frame.
    """

    def __init__(self) -> None:
        self._corners = np.zeros((4, 2))
        self._size = (1, 1)

    def aim(self, corners: Array, size: Size) -> None:
        """Say what is wanted next.

        Args:
            corners: [4, 2], x and y in pixels of the picture; where the upper left, upper right,
                lower right and lower left corner of the result come from.
            size: Width and height of the picture.
        """
        self._corners = corners.astype(np.float64)  # a copy: the frame ends before the next aim
        self._size = size

    def __call__(self, plane: Array, into: Array) -> None:
        """Fill ``into`` from a plane; what lies beyond the picture repeats its edge."""
        shrink = np.array(plane.shape[1::-1]) / self._size
        height, width = into.shape[:2]
        ends = ((0, 0), (width, 0), (width, height), (0, height))
        # OpenCV counts from the centre of the first pixel, we from its edge.
        there = np.array(ends, np.float32) - 0.5
        here = (self._corners * shrink).astype(np.float32) - np.float32(0.5)
        warp = cv2.getPerspectiveTransform(there, here)
        flags = cv2.INTER_LINEAR | cv2.WARP_INVERSE_MAP
        cv2.warpPerspective(
            plane, warp, (width, height), dst=into, flags=flags, borderMode=cv2.BORDER_REPLICATE
        )


def corners_of(boxes: Array) -> Array:
    """Return the corners [N, 4, 2] of upright boxes [N, 4], clockwise from the upper left."""
    return boxes[:, [[0, 1], [2, 1], [2, 3], [0, 3]]]


def grow(corners: Array, margin: float) -> Array:
    """Return corners [N, 4, 2] moved away from their middle by a share of their distance to it."""
    middle = corners.mean(1, keepdims=True)
    grown: Array = middle + (corners - middle) * (1 + 2 * margin)
    return grown


def flat_size(corners: Array) -> Size:
    """Return width and height of a quad [4, 2] that is laid flat, at least a pixel each."""
    sides = np.linalg.norm(np.roll(corners, -1, axis=0) - corners, axis=1)
    width, height = max(sides[0], sides[2]), max(sides[1], sides[3])
    return max(1, round(float(width))), max(1, round(float(height)))


def turn_if_tall(corners: Array) -> Array:
    """Return the corners so that a tall quad lies on its side, its upper end to the left."""
    width, height = flat_size(corners)
    return np.roll(corners, -1, axis=0) if height >= TALL * width else corners

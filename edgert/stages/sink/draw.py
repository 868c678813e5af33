"""Draws results straight on YUV planes: nothing is converted to RGB and back."""

from __future__ import annotations

import colorsys
from dataclasses import dataclass
from typing import Protocol

import cv2

from edgert.results import label_of
from edgert.stages.geometry import Affine, map_boxes, map_points
from edgert.tensor import PortSpec
from edgert.transport.address import Array
from edgert.transport.slot import Sample

FONT = cv2.FONT_HERSHEY_SIMPLEX
GOLDEN_RATIO = 0.618034  # steps of it spread hues as far apart as can be
BLACK = 16
FARTHEST = 1 << 15  # outside of this OpenCV's whole numbers overflow
WEIGHTS = {"bt601": (0.299, 0.114), "bt709": (0.2126, 0.0722), "bt2020": (0.2627, 0.0593)}

Yuv = tuple[int, int, int]
Planes = tuple[Array, Array, Array]


@dataclass(frozen=True, slots=True)
class _Box:
    x1: int
    y1: int
    x2: int
    y2: int


class Painter(Protocol):
    """Draws one kind of results on the planes of a frame.

    Args:
        port: What the results say of themselves once: names of classes, of points.
        matrix: Colour matrix of the planes.
        height: Height of the picture, which decides how thick lines and letters are.
    """

    def __init__(self, port: PortSpec, matrix: str, height: int) -> None: ...

    def paint(self, planes: Planes, results: Sample, to_picture: Affine) -> None:
        """Draw the results of one frame.

        Args:
            planes: y, u and v of the picture.
            results: In pixels of the source frame.
            to_picture: From pixels of the source frame to pixels of the picture.
        """
        ...


class BoxPainter:
    """Draws detections: a box and a label each, and a dot for each landmark."""

    def __init__(self, port: PortSpec, matrix: str, height: int) -> None:
        self._labels: list[str] = port.attributes.get("labels", [])
        self._matrix = matrix
        self._thickness = max(2, round(height / 720) * 2)
        self._scale = letters_for(height)
        self._colours: dict[int, Yuv] = {}

    def paint(self, planes: Planes, results: Sample, to_picture: Affine) -> None:
        """Draw the boxes of one frame, cut to the picture, their labels and landmarks."""
        found = results.tensors
        scores, classes = found["scores"], found["classes"]
        boxes = map_boxes(found["boxes"], to_picture)
        height, width = planes[0].shape
        clipped = boxes.clip((0, 0, 0, 0), (width - 1, height - 1, width - 1, height - 1))
        corners = clipped.round().astype(int).tolist()
        for (x1, y1, x2, y2), score, class_id in zip(
            corners, scores.tolist(), classes.tolist(), strict=True
        ):
            colour = self._colour(class_id)
            self._outline(planes, _Box(x1, y1, x2, y2), colour)
            text = f"{label_of(class_id, self._labels)} {score:.2f}"
            write_text(planes, (x1, y1), text, self._scale, colour)
        if "landmarks" in found:
            points = map_points(found["landmarks"], to_picture).clip(-FARTHEST, FARTHEST)
            for its_points, class_id in zip(points, classes.tolist(), strict=True):
                self._dots(planes, its_points.round().astype(int), self._colour(class_id))

    def _outline(self, planes: Planes, box: _Box, colour: Yuv) -> None:
        y, u, v = planes
        cv2.rectangle(y, (box.x1, box.y1), (box.x2, box.y2), colour[0], self._thickness)
        for plane, value in ((u, colour[1]), (v, colour[2])):
            start, end = (box.x1 // 2, box.y1 // 2), (box.x2 // 2, box.y2 // 2)
            cv2.rectangle(plane, start, end, value, self._thickness // 2)

    def _dots(self, planes: Planes, points: Array, colour: Yuv) -> None:
        for plane, value, shrink in zip(planes, colour, (1, 2, 2), strict=True):
            for point in (points // shrink).tolist():
                cv2.circle(plane, point, self._thickness // shrink, value, cv2.FILLED)

    def _colour(self, class_id: int) -> Yuv:
        colour = self._colours.get(class_id)
        if colour is None:
            colour = self._colours[class_id] = colour_of(class_id, self._matrix)
        return colour


def letters_for(height: int) -> float:
    """Return the size of letters for a picture of so many rows."""
    return max(0.4, height / 1200)


def write_text(
    planes: Planes, above: tuple[int, int], text: str, scale: float, colour: Yuv
) -> None:
    """Write a line in black on a colour, within the picture.

    Args:
        planes: y, u and v of the picture.
        above: Where its lower left corner belongs, if there is room above.
        text: The line.
        scale: Size of the letters, see ``letters_for``.
        colour: Of what it is written on.
    """
    left, bottom = above
    (width, height), below = cv2.getTextSize(text, FONT, scale, 1)
    bottom = max(bottom, height + below)
    left = max(0, min(left, planes[0].shape[1] - width))
    corner = (left + width, bottom - height - below)
    y, u, v = planes
    cv2.rectangle(y, (left, bottom), corner, colour[0], cv2.FILLED)
    for plane, value in ((u, colour[1]), (v, colour[2])):
        end = (corner[0] // 2, corner[1] // 2)
        cv2.rectangle(plane, (left // 2, bottom // 2), end, value, cv2.FILLED)
    cv2.putText(y, text, (left, bottom - below // 2 - 1), FONT, scale, BLACK, 1)


def colour_of(class_id: int, matrix: str) -> Yuv:
    """Return a bright colour for a class, in limited range."""
    red, green, blue = colorsys.hsv_to_rgb(class_id * GOLDEN_RATIO % 1, 0.75, 1)
    of_red, of_blue = WEIGHTS[matrix]
    luma = of_red * red + (1 - of_red - of_blue) * green + of_blue * blue
    u = (blue - luma) / (2 * (1 - of_blue))
    v = (red - luma) / (2 * (1 - of_red))
    return round(16 + 219 * luma), round(128 + 224 * u), round(128 + 224 * v)

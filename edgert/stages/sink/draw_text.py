"""Draws lines of text on YUV planes: their outline, and what they say above it."""

from __future__ import annotations

import cv2
import numpy as np

from edgert.stages.geometry import Affine, map_points
from edgert.stages.sink.draw import FARTHEST, FONT, Planes, colour_of
from edgert.tensor import PortSpec
from edgert.transport.address import Array
from edgert.transport.slot import Sample

WHITE = 235


class TextPainter:
    """Draws lines of text; OpenCV's letters are ASCII, others are drawn as question marks."""

    def __init__(self, port: PortSpec, matrix: str, height: int) -> None:
        self._colour = colour_of(0, matrix)
        self._thickness = max(2, round(height / 720) * 2)
        self._scale = max(0.4, height / 1200)

    def paint(self, planes: Planes, results: Sample, to_picture: Affine) -> None:
        """Draw the lines of one frame."""
        texts: list[str] = results.metadata["text"]
        outlines = map_points(results.tensors["corners"], to_picture).clip(-FARTHEST, FARTHEST)
        for text, outline in zip(texts, outlines.round().astype(np.int32), strict=True):
            self._line(planes, outline, text)

    def _line(self, planes: Planes, outline: Array, text: str) -> None:
        for plane, value, shrink in zip(planes, self._colour, (1, 2, 2), strict=True):
            thickness = self._thickness // shrink
            cv2.polylines(
                plane, [outline // shrink], isClosed=True, color=value, thickness=thickness
            )
        _, letters = cv2.getTextSize(text, FONT, self._scale, 1)
        x, y = outline.min(0).tolist()
        at = (max(0, x), max(letters * 3, y - letters // 2))
        for value, thickness in ((0, 3), (WHITE, 1)):
            cv2.putText(planes[0], text, at, FONT, self._scale, value, thickness)

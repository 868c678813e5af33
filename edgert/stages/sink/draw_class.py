"""Writes classes into the upper left corner of YUV planes."""

from __future__ import annotations

import cv2

from edgert.results import label_of
from edgert.stages.geometry import Affine
from edgert.stages.sink.draw import FONT, Planes, colour_of, letters_for, write_text
from edgert.tensor import PortSpec
from edgert.transport.slot import Sample

MOST_LINES = 3
GAP = 2  # rows between two lines


class ClassPainter:
    """Writes the best classes of a frame, one on each line."""

    def __init__(self, port: PortSpec, matrix: str, height: int) -> None:
        self._labels: list[str] = port.attributes.get("labels", [])
        self._scale = letters_for(height)
        self._colour = colour_of(0, matrix)

    def paint(self, planes: Planes, results: Sample, to_picture: Affine) -> None:
        """Write the classes of one frame."""
        tensors = results.tensors
        pairs = zip(tensors["classes"].tolist(), tensors["scores"].tolist(), strict=True)
        bottom = 0
        for class_id, score in list(pairs)[:MOST_LINES]:
            text = f"{label_of(class_id, self._labels)} {score:.2f}"
            (_, letters), below = cv2.getTextSize(text, FONT, self._scale, 1)
            bottom += letters + below + GAP
            write_text(planes, (0, bottom), text, self._scale, self._colour)

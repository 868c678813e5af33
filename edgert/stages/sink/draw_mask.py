"""Lays masks of classes over YUV planes, half transparent."""

from __future__ import annotations

import cv2
import numpy as np

from edgert.stages.geometry import Affine, compose, map_boxes
from edgert.stages.sink.draw import Planes, colour_of
from edgert.tensor import PortSpec
from edgert.transport.address import Array
from edgert.transport.slot import Sample

CLASSES = 256


class MaskPainter:
    """Draws segmentations: each class in its colour, the background as it is."""

    def __init__(self, port: PortSpec, matrix: str, height: int) -> None:
        colours = [colour_of(class_id, matrix) for class_id in range(CLASSES)]
        self._tables = np.array(colours, np.uint8).T.copy()

    def paint(self, planes: Planes, results: Sample, to_picture: Affine) -> None:
        """Draw the mask of one frame."""
        mask = results.tensors["mask"]
        transform = compose(to_picture, results.header.transform)
        box = map_boxes(np.array([[0.0, 0.0, mask.shape[1], mask.shape[0]]]), transform)[0]
        for plane, table, shrink in zip(planes, self._tables, (1, 2, 2), strict=True):
            _blend(plane, mask, box / shrink, table)


def _blend(plane: Array, mask: Array, box: Array, table: Array) -> None:
    """Mix a plane half and half with the colours of a mask that is stretched over ``box``."""
    left, top, right, bottom = box.round().astype(int).tolist()
    if right <= left or bottom <= top:
        return
    large = cv2.resize(mask, (right - left, bottom - top), interpolation=cv2.INTER_NEAREST)
    x, y = max(0, left), max(0, top)
    part = plane[y:bottom, x:right]
    large = large[y - top :, x - left :][: part.shape[0], : part.shape[1]]
    mixed = cv2.addWeighted(part, 0.5, cv2.LUT(large, table), 0.5, 0)
    np.copyto(part, mixed, where=large > 0)

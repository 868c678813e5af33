"""YOLOX as exported without its decoding: raw heads on grids of several strides."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import numpy as np

from edgert.stages.postprocess.candidates import Candidates, Overlaps, without_batch
from edgert.stages.postprocess.head import Head
from edgert.transport.address import Array

# exp of more is wider than any picture; without a limit a wild output would overflow.
_MAX_EXPONENT = 80.0


class YoloxDecoder:
    """``xy = (p + cell) * stride``, ``wh = exp(p) * stride``, ``score = objectness * class``."""

    overlaps: ClassVar[Overlaps] = "suppress"

    def __init__(self, head: Head, threshold: float) -> None:
        self._name = head.tensors["predictions"]
        self._threshold = threshold
        cells = [_cells(head.width, head.height, stride) for stride in head.strides]
        self._cells: Array = np.concatenate(cells)  # x, y, stride
        self._mask = np.empty(len(self._cells), np.bool_)

    def decode(self, tensors: Mapping[str, Array]) -> Candidates:
        """Return every box whose score reaches the threshold.

        A class score is at most 1, so only cells whose objectness alone reaches the threshold
        are looked at any further: a few dozen of thousands.
        """
        predictions = without_batch(tensors[self._name])
        np.greater_equal(predictions[:, 4], self._threshold, out=self._mask)
        found = self._mask.nonzero()[0]
        rows = predictions[found]
        of_class = rows[:, 5:]
        scores = rows[:, 4] * of_class.max(1)
        kept = (scores >= self._threshold).nonzero()[0]
        rows = rows[kept]
        cells = self._cells[found[kept]]
        stride = cells[:, 2:]
        half = np.exp(np.minimum(rows[:, 2:4], _MAX_EXPONENT), dtype=np.float64) * (stride * 0.5)
        centre = (rows[:, :2] + cells[:, :2]) * stride
        boxes = np.concatenate((centre - half, centre + half), axis=1)
        return Candidates(boxes, scores[kept], rows[:, 5:].argmax(1))


def _cells(width: int, height: int, stride: int) -> Array:
    """Return f64 [cells, 3]: column, row and stride of each cell, row by row."""
    y, x = np.mgrid[: height // stride, : width // stride]
    return np.stack([x.ravel(), y.ravel(), np.full(x.size, stride)], 1).astype(np.float64)

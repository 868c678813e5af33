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
    reads_classes: ClassVar = False

    def __init__(self, head: Head, threshold: float) -> None:
        self._name = head.tensors["predictions"]
        self._threshold = threshold
        size = (head.width, head.height)
        # Of each cell: what is added to its four numbers, and what they are multiplied by then.
        self._offsets = np.concatenate([_offsets(*size, stride) for stride in head.strides])
        sizes = [(head.width // stride) * (head.height // stride) for stride in head.strides]
        factors = [(stride, stride, stride / 2, stride / 2) for stride in head.strides]
        self._factors = np.repeat(np.array(factors), sizes, axis=0)
        self._mask = np.empty(len(self._offsets), np.bool_)

    def decode(self, tensors: Mapping[str, Array]) -> Candidates:
        """Return every box whose score reaches the threshold.

        A class score is at most 1, so only cells whose objectness alone reaches the threshold
        are looked at any further: a few dozen of thousands.
        """
        predictions = without_batch(tensors[self._name])
        np.greater_equal(predictions[:, 4], self._threshold, out=self._mask)
        found = self._mask.nonzero()[0]
        rows = predictions.take(found, 0)
        scores = rows[:, 4] * rows[:, 5:].max(1)
        kept = (scores >= self._threshold).nonzero()[0]
        rows, cells = rows.take(kept, 0), found.take(kept)
        numbers = rows[:, :4].astype(np.float64)  # all that follows stays in one type: no casts
        centre, half = numbers[:, :2], numbers[:, 2:]
        np.minimum(half, _MAX_EXPONENT, out=half)
        np.exp(half, out=half)
        numbers += self._offsets.take(cells, 0)
        numbers *= self._factors.take(cells, 0)
        boxes = np.concatenate((centre - half, centre + half), axis=1)
        return Candidates(boxes, scores.take(kept), rows[:, 5:].argmax(1))


def _offsets(width: int, height: int, stride: int) -> Array:
    """Return f64 [cells, 4]: column and row of each cell, row by row, and two zeros."""
    y, x = np.mgrid[: height // stride, : width // stride]
    nothing = np.zeros(x.size)
    return np.stack([x.ravel(), y.ravel(), nothing, nothing], 1)

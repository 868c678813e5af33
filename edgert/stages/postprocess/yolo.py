"""Ultralytics' layouts: v5 with objectness, v8 to v12 without, and the end-to-end ones."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import numpy as np

from edgert.stages.postprocess.candidates import Candidates, Overlaps, corners, without_batch
from edgert.stages.postprocess.head import Head
from edgert.transport.address import Array


def _scale(head: Head) -> Array:
    size = (head.width, head.height) if head.normalised else (1, 1)
    return np.array(size * 2, np.float64)


class YoloDecoder:
    """Boxes by centre and size, then the score of each class.

    ``[1, N, 4 + classes]``, or ``5 +`` with objectness in the fifth place, or either transposed.
    """

    overlaps: ClassVar[Overlaps] = "suppress"
    reads_classes: ClassVar = False

    def __init__(self, head: Head, threshold: float) -> None:
        self._name = head.tensors["predictions"]
        self._threshold = threshold
        self._has_columns = head.layout == "columns"
        self._has_objectness = head.has_objectness
        self._first_class = 5 if head.has_objectness else 4
        self._scale = _scale(head)
        self._best = np.empty(0, np.float32)

    def decode(self, tensors: Mapping[str, Array]) -> Candidates:
        """Return every box whose score reaches the threshold."""
        predictions = without_batch(tensors[self._name])
        table = predictions.T if self._has_columns else predictions
        rows = table[self._promising(table)]
        by_class = rows[:, self._first_class :]
        classes = by_class.argmax(1)
        scores = by_class[np.arange(len(rows)), classes]
        if self._has_objectness:
            scores = scores * rows[:, 4]
        kept = (scores >= self._threshold).nonzero()[0]
        numbers = rows[kept, :4].astype(np.float64) * self._scale
        return Candidates(corners(*numbers.T), scores[kept], classes[kept])

    def _promising(self, table: Array) -> Array:
        """Return the rows that may reach the threshold: no other row is looked at any further."""
        if self._has_objectness:
            return (table[:, 4] >= self._threshold).nonzero()[0]
        if self._best.size != len(table) or self._best.dtype != table.dtype:
            self._best = np.empty(len(table), table.dtype)
        np.max(table[:, 4:], axis=1, out=self._best)
        return (self._best >= self._threshold).nonzero()[0]


class YoloNmsFreeDecoder:
    """``[1, N, 6]``: x1, y1, x2, y2, score, class; the model has already sorted them out."""

    overlaps: ClassVar[Overlaps] = "none"
    reads_classes: ClassVar = True

    def __init__(self, head: Head, threshold: float) -> None:
        self._name = head.tensors["predictions"]
        self._threshold = threshold
        self._scale = _scale(head)

    def decode(self, tensors: Mapping[str, Array]) -> Candidates:
        """Return every box whose score reaches the threshold."""
        predictions = without_batch(tensors[self._name])
        rows = predictions[(predictions[:, 4] >= self._threshold).nonzero()[0]]
        return Candidates(rows[:, :4].astype(np.float64) * self._scale, rows[:, 4], rows[:, 5])

"""SSD with post-processing in the model: boxes (y1, x1, y2, x2), classes, scores, and a count."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import numpy as np

from edgert.stages.postprocess.candidates import Candidates, Overlaps
from edgert.stages.postprocess.head import Head
from edgert.transport.address import Array


class SsdDecoder:
    """Boxes that the model has already sorted out: they have only to be read."""

    overlaps: ClassVar[Overlaps] = "none"
    reads_classes: ClassVar = True

    def __init__(self, head: Head, threshold: float) -> None:
        self._tensors = head.tensors
        self._threshold = threshold
        size = (head.width, head.height) if head.normalised else (1, 1)
        self._scale = np.array(size * 2, np.float64)

    def decode(self, tensors: Mapping[str, Array]) -> Candidates:
        """Return every box whose score reaches the threshold."""
        scores = tensors[self._tensors["scores"]].reshape(-1)[: self._count(tensors)]
        found = (scores >= self._threshold).nonzero()[0]
        boxes = tensors[self._tensors["boxes"]].reshape(-1, 4)[found].astype(np.float64)
        classes = tensors[self._tensors["classes"]].reshape(-1)[found]
        return Candidates(boxes[:, (1, 0, 3, 2)] * self._scale, scores[found], classes)

    def _count(self, tensors: Mapping[str, Array]) -> int | None:
        name = self._tensors.get("count")
        if name is None:
            return None
        count = float(tensors[name].reshape(-1)[0])
        return int(count) if 0 <= count < 2**31 else 0

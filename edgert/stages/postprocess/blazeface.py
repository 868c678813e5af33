"""BlazeFace: boxes and six landmarks as distances from anchors on two grids.

Bazarevsky, Kartynnik, Vakunov, Raveendran, Grundmann: "BlazeFace: Sub-millisecond Neural Face
Detection on Mobile GPUs", arXiv:1907.05047. The anchors are those of MediaPipe's graphs
``face_detection_short_range`` (strides 8, 16, 16, 16) and ``face_detection_full_range`` (stride 4):
all of the same size, in the middle of their cell, those of grids of one stride cell by cell.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import ClassVar

import numpy as np

from edgert.stages.postprocess.candidates import Candidates, Overlaps, corners
from edgert.stages.postprocess.head import Head
from edgert.transport.address import Array


class BlazeFaceDecoder:
    """``centre = anchor + p``, ``size = p``, ``landmark = anchor + p``, all in pixels of the input.

    Overlapping boxes are blended, which shakes less from frame to frame than the best one alone
    (section 3.4 of the paper).
    """

    overlaps: ClassVar[Overlaps] = "blend"
    reads_classes: ClassVar = False

    def __init__(self, head: Head, threshold: float) -> None:
        self._boxes, self._scores = head.tensors["boxes"], head.tensors["scores"]
        self._threshold = threshold
        self._anchors = anchors(head.width, head.height, head.strides)

    def decode(self, tensors: Mapping[str, Array]) -> Candidates:
        """Return the face of every anchor whose score reaches the threshold."""
        scores = 1 / (1 + np.exp(-tensors[self._scores][0, :, 0]))
        found = (scores >= self._threshold).nonzero()[0]
        rows = tensors[self._boxes][0, found].astype(np.float64)
        # Two anchors a cell in the short-range model, one in the other: they lie on one another.
        a_cell = len(scores) // len(self._anchors)
        anchor = self._anchors[found // a_cell]
        centre = rows[:, :2] + anchor
        boxes = corners(centre[:, 0], centre[:, 1], rows[:, 2], rows[:, 3])
        points = rows[:, 4:].reshape(len(rows), (rows.shape[1] - 4) // 2, 2) + anchor[:, None]
        return Candidates(boxes, scores[found], np.zeros(len(found), np.int32), points)


def anchors(width: int, height: int, strides: Sequence[int]) -> Array:
    """Return f64 [cells, 2]: x and y of the middle of each cell, in pixels of the input."""
    return np.concatenate(list(_grids(width, height, strides)))


def _grids(width: int, height: int, strides: Sequence[int]) -> Iterator[Array]:
    for stride, same in groupby(strides):
        y, x = np.mgrid[: height // stride, : width // stride]
        middles = (np.stack([x.ravel(), y.ravel()], 1) + 0.5) * stride
        yield np.repeat(middles, len(list(same)), axis=0)

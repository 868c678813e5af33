"""YuNet: faces and five landmarks on grids of three strides, without anchors.

Wu, Peng, Yu: "YuNet: A Tiny Millisecond-level Face Detector", Machine Intelligence Research 2023,
and the authors' repository ShiqiYu/libfacedetection.train; OpenCV's FaceDetectorYN reads the same.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import numpy as np

from edgert.stages.postprocess.candidates import Candidates, Overlaps, corners
from edgert.stages.postprocess.fit import YUNET_PARTS
from edgert.stages.postprocess.head import Head
from edgert.transport.address import Array

# exp of more is wider than any picture; without a limit a wild output would overflow.
_MAX_EXPONENT = 80.0


class YunetDecoder:
    """``centre = (cell + p) * stride``, ``size = exp(p) * stride``, ``landmark`` as the centre.

    The score is the geometric mean of class score and objectness.
    """

    overlaps: ClassVar[Overlaps] = "suppress"
    reads_classes: ClassVar = False

    def __init__(self, head: Head, threshold: float) -> None:
        self._tensors = head.tensors
        self._columns = {stride: head.width // stride for stride in head.strides}
        self._threshold = threshold

    def decode(self, tensors: Mapping[str, Array]) -> Candidates:
        """Return the face of every cell whose score reaches the threshold."""
        grids = [self._grid(tensors, stride) for stride in self._columns]
        boxes, scores, points = (np.concatenate(parts) for parts in zip(*grids, strict=True))
        return Candidates(boxes, scores, np.zeros(len(scores), np.int32), points)

    def _grid(self, tensors: Mapping[str, Array], stride: int) -> tuple[Array, Array, Array]:
        of_class, objectness, box, landmarks = (
            tensors[self._tensors[f"{part}_{stride}"]][0] for part in YUNET_PARTS
        )
        scores = np.sqrt(of_class[:, 0].clip(0, 1) * objectness[:, 0].clip(0, 1))
        found = (scores >= self._threshold).nonzero()[0]
        row, column = np.divmod(found, self._columns[stride])
        cell = np.stack([column, row], axis=1)
        rows, points = box[found].astype(np.float64), landmarks[found].astype(np.float64)
        x, y = ((rows[:, :2] + cell) * stride).T
        width, height = (np.exp(np.minimum(rows[:, 2:], _MAX_EXPONENT)) * stride).T
        pairs = points.reshape(len(found), points.shape[1] // 2, 2)
        return corners(x, y, width, height), scores[found], (pairs + cell[:, None]) * stride

"""CenterFace: a face is a point of a heatmap, with its size and five landmarks beside it.

Xu, Yan, Sun, Yang, Luo: "CenterFace: Joint Face Detection and Alignment Using Face as Point",
arXiv:1911.03599, and the authors' repository Star-Clouds/CenterFace.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import numpy as np

from edgert.stages.postprocess.candidates import Candidates, Overlaps, corners
from edgert.stages.postprocess.fit import CENTERFACE_STRIDE
from edgert.stages.postprocess.head import Head
from edgert.transport.address import Array

# exp of more is wider than any picture; without a limit a wild output would overflow.
_MAX_EXPONENT = 80.0


class CenterFaceDecoder:
    """``centre = (cell + offset + 0.5) * 4``, ``size = exp(scale) * 4``, height and y first.

    A landmark is a fraction of the box, from its upper left corner.
    """

    overlaps: ClassVar[Overlaps] = "suppress"
    reads_classes: ClassVar = False

    def __init__(self, head: Head, threshold: float) -> None:
        self._tensors = head.tensors
        self._threshold = threshold

    def decode(self, tensors: Mapping[str, Array]) -> Candidates:
        """Return the face of every cell whose heat reaches the threshold."""
        heat = tensors[self._tensors["heatmap"]][0, 0]
        row, column = (heat >= self._threshold).nonzero()
        scale, offset, landmarks = (
            tensors[self._tensors[role]][0, :, row, column].astype(np.float64)
            for role in ("scale", "offset", "landmarks")
        )
        height, width = (np.exp(np.minimum(scale, _MAX_EXPONENT)) * CENTERFACE_STRIDE).T
        y = (row + offset[:, 0] + 0.5) * CENTERFACE_STRIDE
        x = (column + offset[:, 1] + 0.5) * CENTERFACE_STRIDE
        boxes = corners(x, y, width, height)
        points = landmarks.reshape(len(row), landmarks.shape[1] // 2, 2)[:, :, ::-1]
        sizes = np.stack([width, height], axis=1)[:, None]
        points = points * sizes + boxes[:, None, :2]
        return Candidates(boxes, heat[row, column], np.zeros(len(row), np.int32), points)

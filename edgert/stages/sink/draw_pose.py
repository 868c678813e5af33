"""Draws poses on YUV planes: points, and the limbs between those whose names belong together."""

from __future__ import annotations

import cv2
import numpy as np

from edgert.stages.geometry import Affine, map_points
from edgert.stages.sink.draw import FARTHEST, Planes, Yuv, colour_of
from edgert.tensor import PortSpec
from edgert.transport.address import Array
from edgert.transport.slot import Sample

SURE = 0.3  # a point below this score is not drawn
# Pairs of names, as COCO's; of a body with other names only the points are drawn.
LIMBS = (
    ("left_shoulder", "right_shoulder"),
    ("left_hip", "right_hip"),
    *(
        (f"{side}_{one}", f"{side}_{other}")
        for side in ("left", "right")
        for one, other in (
            ("eye", "ear"),
            ("shoulder", "elbow"),
            ("elbow", "wrist"),
            ("shoulder", "hip"),
            ("hip", "knee"),
            ("knee", "ankle"),
        )
    ),
)


class PosePainter:
    """Draws poses, each in its own colour."""

    def __init__(self, port: PortSpec, matrix: str, height: int) -> None:
        names: list[str] = port.attributes["keypoints"]
        self._limbs = [
            (names.index(one), names.index(other))
            for one, other in LIMBS
            if one in names and other in names
        ]
        self._matrix = matrix
        self._thickness = max(2, round(height / 720) * 2)

    def paint(self, planes: Planes, results: Sample, to_picture: Affine) -> None:
        """Draw the poses of one frame."""
        for number, pose in enumerate(results.tensors["keypoints"]):
            points = map_points(pose[:, :2], to_picture)
            whole = points.clip(-FARTHEST, FARTHEST).round().astype(int)
            self._pose(planes, whole, pose[:, 2] >= SURE, colour_of(number, self._matrix))

    def _pose(self, planes: Planes, points: Array, is_sure: Array, colour: Yuv) -> None:
        limbs = [limb for limb in self._limbs if is_sure[limb[0]] and is_sure[limb[1]]]
        for plane, value, shrink in zip(planes, colour, (1, 2, 2), strict=True):
            at = points // shrink
            thickness = max(1, self._thickness // shrink)
            for one, other in limbs:
                cv2.line(plane, at[one].tolist(), at[other].tolist(), value, thickness)
            for point in at[np.flatnonzero(is_sure)].tolist():
                cv2.circle(plane, point, thickness * 2, value, cv2.FILLED)

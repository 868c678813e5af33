"""Poses: a person as points with names."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
import numpy.typing as npt

from edgert.results.frame import FrameResult, rounded


class Keypoint(msgspec.Struct, frozen=True):
    """One point of a body.

    Attributes:
        name: For example ``left_shoulder``: left as the person has it.
        x: In pixels of the source frame; outside of it where the model guesses it there.
        y: The same.
        score: Confidence, 0 to 1.
    """

    name: str
    x: float
    y: float
    score: float


class Pose(msgspec.Struct, frozen=True):
    """One person.

    Attributes:
        score: Confidence, 0 to 1.
        keypoints: Every point the model knows, in its order, those it is not sure of too.
    """

    score: float
    keypoints: list[Keypoint]


class PoseResult(FrameResult, frozen=True, kw_only=True, tag="pose"):
    """The poses of one frame.

    Attributes:
        poses: Empty where nobody was found.
    """

    poses: list[Pose]


def poses_from(
    keypoints: npt.NDArray[Any], scores: npt.NDArray[Any], names: Sequence[str]
) -> list[Pose]:
    """Return the poses of a frame.

    Args:
        keypoints: [N, K, 3], x, y and score of each point.
        scores: [N].
        names: Name of each point.
    """
    places, sure = rounded(keypoints[..., :2], 2), rounded(keypoints[..., 2], 4)
    return [
        Pose(
            score,
            [
                Keypoint(name, x, y, its_score)
                for name, (x, y), its_score in zip(names, points, its_scores, strict=True)
            ],
        )
        for points, its_scores, score in zip(places, sure, rounded(scores, 4), strict=True)
    ]

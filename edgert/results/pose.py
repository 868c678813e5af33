"""Poses: a person as points with names."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from edgert.results.frame import FrameResult


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
    keypoints: Sequence[Sequence[Sequence[float]]], scores: Sequence[float], names: Sequence[str]
) -> list[Pose]:
    """Return the poses of a frame from plain lists: (x, y, score) of each point of each pose."""
    return [
        Pose(
            round(score, 4),
            [
                Keypoint(name, round(x, 2), round(y, 2), round(sure, 4))
                for name, (x, y, sure) in zip(names, points, strict=True)
            ],
        )
        for points, score in zip(keypoints, scores, strict=True)
    ]

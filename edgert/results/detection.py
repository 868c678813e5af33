"""Detections: things in boxes."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import repeat
from typing import Any

import msgspec
import numpy.typing as npt

from edgert.results.frame import FrameResult, rounded


class Detection(msgspec.Struct, frozen=True, omit_defaults=True):
    """One thing that was found.

    Attributes:
        label: Name of the class; its number in words where the model has no labels.
        class_id: Number of the class; ``class`` in JSON.
        score: Confidence, 0 to 1.
        box: x1, y1, x2, y2 in pixels of the source frame.
        landmarks: x, y of each point that the model gives of it, in the model's order, in pixels of
            the source frame; not in JSON where the model gives none.
    """

    label: str
    class_id: int = msgspec.field(name="class")
    score: float
    box: tuple[float, float, float, float]
    landmarks: list[tuple[float, float]] | None = None


class DetectionResult(FrameResult, frozen=True, kw_only=True, tag="detection"):
    """What was found in one frame.

    Attributes:
        detections: Empty where nothing was found.
    """

    detections: list[Detection]


def detections_from(
    boxes: npt.NDArray[Any],
    scores: npt.NDArray[Any],
    classes: npt.NDArray[Any],
    labels: Sequence[str],
    landmarks: npt.NDArray[Any] | None = None,
) -> list[Detection]:
    """Return the detections of a frame.

    Args:
        boxes: [N, 4], x1, y1, x2, y2.
        scores: [N].
        classes: Whole numbers [N].
        labels: Name of each class.
        landmarks: [N, K, 2], x and y of each point.
    """
    points = repeat(None, len(boxes)) if landmarks is None else map(_pairs, rounded(landmarks, 2))
    found = zip(rounded(boxes, 2), rounded(scores, 4), classes.tolist(), points, strict=True)
    return [
        Detection(label_of(class_id, labels), class_id, score, tuple(box), its_points)
        for box, score, class_id, its_points in found
    ]


def _pairs(points: Sequence[Sequence[float]]) -> list[tuple[float, float]]:
    return [(x, y) for x, y in points]


def label_of(class_id: int, labels: Sequence[str]) -> str:
    """Return the name of a class, or its number in words."""
    return labels[class_id] if 0 <= class_id < len(labels) else f"class {class_id}"

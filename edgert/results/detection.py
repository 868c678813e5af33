"""Detections: things in boxes."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import repeat

import msgspec

from edgert.results.frame import FrameResult


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
    boxes: Sequence[Sequence[float]],
    scores: Sequence[float],
    classes: Sequence[int],
    labels: Sequence[str],
    landmarks: Sequence[Sequence[Sequence[float]]] | None = None,
) -> list[Detection]:
    """Return the detections of a frame from plain lists (``array.tolist()``)."""
    points = repeat(None, len(boxes)) if landmarks is None else map(_rounded, landmarks)
    return [
        Detection(
            label_of(class_id, labels),
            class_id,
            round(score, 4),
            (round(x1, 2), round(y1, 2), round(x2, 2), round(y2, 2)),
            its_points,
        )
        for (x1, y1, x2, y2), score, class_id, its_points in zip(
            boxes, scores, classes, points, strict=True
        )
    ]


def _rounded(points: Sequence[Sequence[float]]) -> list[tuple[float, float]]:
    return [(round(x, 2), round(y, 2)) for x, y in points]


def label_of(class_id: int, labels: Sequence[str]) -> str:
    """Return the name of a class, or its number in words."""
    return labels[class_id] if 0 <= class_id < len(labels) else f"class {class_id}"

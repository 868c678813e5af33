"""Detections: things in boxes."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from edgert.results.frame import FrameResult


class Detection(msgspec.Struct, frozen=True):
    """One thing that was found.

    Attributes:
        label: Name of the class; its number in words where the model has no labels.
        class_id: Number of the class; ``class`` in JSON.
        score: Confidence, 0 to 1.
        box: x1, y1, x2, y2 in pixels of the source frame.
    """

    label: str
    class_id: int = msgspec.field(name="class")
    score: float
    box: tuple[float, float, float, float]


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
) -> list[Detection]:
    """Return the detections of a frame from plain lists (``array.tolist()``)."""
    return [
        Detection(
            label_of(class_id, labels),
            class_id,
            round(score, 4),
            (round(x1, 2), round(y1, 2), round(x2, 2), round(y2, 2)),
        )
        for (x1, y1, x2, y2), score, class_id in zip(boxes, scores, classes, strict=True)
    ]


def label_of(class_id: int, labels: Sequence[str]) -> str:
    """Return the name of a class, or its number in words."""
    return labels[class_id] if 0 <= class_id < len(labels) else f"class {class_id}"

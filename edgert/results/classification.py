"""Classifications: what a whole picture shows."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from edgert.results.detection import label_of
from edgert.results.frame import FrameResult


class ClassScore(msgspec.Struct, frozen=True):
    """One class that the picture may be of.

    Attributes:
        label: Name of the class; its number in words where the model has no labels.
        class_id: Number of the class; ``class`` in JSON.
        score: Confidence, 0 to 1.
    """

    label: str
    class_id: int = msgspec.field(name="class")
    score: float


class ClassificationResult(FrameResult, frozen=True, kw_only=True, tag="classification"):
    """The classes of one frame.

    Attributes:
        classes: Best first; empty where none reaches the threshold.
    """

    classes: list[ClassScore]


def classes_from(
    scores: Sequence[float], classes: Sequence[int], labels: Sequence[str]
) -> list[ClassScore]:
    """Return the classes of a frame from plain lists (``array.tolist()``)."""
    return [
        ClassScore(label_of(class_id, labels), class_id, round(score, 4))
        for score, class_id in zip(scores, classes, strict=True)
    ]

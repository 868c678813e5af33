"""Classifications: what a whole picture shows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
import numpy.typing as npt

from edgert.results.detection import label_of
from edgert.results.frame import FrameResult, rounded


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
    scores: npt.NDArray[Any], classes: npt.NDArray[Any], labels: Sequence[str]
) -> list[ClassScore]:
    """Return the classes of a frame, of scores [N] and whole numbers [N]."""
    return [
        ClassScore(label_of(class_id, labels), class_id, score)
        for score, class_id in zip(rounded(scores, 4), classes.tolist(), strict=True)
    ]

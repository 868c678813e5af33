"""What a family's decoder finds in the outputs of a model, before anything is sorted out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Literal, NamedTuple, Protocol

import numpy as np

from edgert.transport.address import Array

Overlaps = Literal["none", "suppress", "blend"]


class Candidates(NamedTuple):
    """Boxes that may be detections: those at or above the threshold, in any order.

    Attributes:
        boxes: f64 [N, 4], x1, y1, x2, y2 in pixels of the model's input (f64, so that no
            number a model may give overflows on its way).
        scores: [N].
        classes: Whole numbers [N], as the model counts them.
        landmarks: f64 [N, K, 2], x and y of K points of each thing, in the same pixels; None where
            the family has no such points.
    """

    boxes: Array
    scores: Array
    classes: Array
    landmarks: Array | None = None

    def take(self, which: Array) -> Candidates:
        """Return some of them, by their indices."""
        points = None if self.landmarks is None else self.landmarks.take(which, 0)
        boxes, scores = self.boxes.take(which, 0), self.scores.take(which)
        return Candidates(boxes, scores, self.classes.take(which), points)


class Decoder(Protocol):
    """Reads the outputs of one family of models.

    Attributes:
        overlaps: What is done to boxes that show the same object: ``none`` where there are none
            such, ``suppress`` (the best one stays) or ``blend`` (they become one).
        reads_classes: Whether numbers of classes stand in an output, which may hold anything; else
            they are columns, as many as ``fit.py`` has seen.
    """

    overlaps: ClassVar[Overlaps]
    reads_classes: ClassVar[bool]

    def decode(self, tensors: Mapping[str, Array]) -> Candidates:
        """Return every box whose score reaches the threshold; keep no view of ``tensors``."""
        ...


def corners(centre_x: Array, centre_y: Array, width: Array, height: Array) -> Array:
    """Return f64 [N, 4] (x1, y1, x2, y2) of boxes given by centre and size."""
    boxes = np.empty((len(centre_x), 4))
    half_width, half_height = width * 0.5, height * 0.5
    boxes[:, 0] = centre_x - half_width
    boxes[:, 1] = centre_y - half_height
    boxes[:, 2] = centre_x + half_width
    boxes[:, 3] = centre_y + half_height
    return boxes


def without_batch(array: Array) -> Array:
    """Return [rows, columns] of an output with or without its batch of one."""
    return array[0] if array.ndim == 3 else array

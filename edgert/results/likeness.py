"""How alike two results for the same input are: boxes in pairs, and tensors number by number."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple, TypeAlias

import msgspec
import numpy as np

Array: TypeAlias = np.ndarray[Any, Any]

_MATCH = 0.5


class Found(msgspec.Struct, frozen=True):
    """The boxes that one device or model finds in one picture: [N, 4], [N], [N]."""

    boxes: Array
    scores: Array
    classes: Array


class Pair(msgspec.Struct, frozen=True):
    """Two boxes for the same object."""

    iou: float
    score_error: float


class Likeness(NamedTuple):
    """What two results share, of what both have; over several frames each is added up.

    Attributes:
        shared: What is the same in both, counted in both.
        both: What there is in both; 0 where there is nothing to compare.
    """

    shared: float
    both: float


def matches(expected: Found, actual: Found) -> Iterator[Pair]:
    """Pair boxes of the same class, those that overlap the most first; each has one partner."""
    overlaps = _ious(expected.boxes, actual.boxes)
    overlaps[expected.classes[:, None] != actual.classes[None]] = 0.0
    while overlaps.size and overlaps.max() >= _MATCH:
        row, column = np.unravel_index(int(overlaps.argmax()), overlaps.shape)
        error = abs(float(expected.scores[row]) - float(actual.scores[column]))
        yield Pair(float(overlaps[row, column]), error)
        overlaps[row] = 0.0
        overlaps[:, column] = 0.0


def likeness_of_boxes(one: Found, other: Found) -> Likeness:
    """Return how much of all boxes overlaps with its partner: 1.0 where all lie on each other."""
    shared = 2 * sum(pair.iou for pair in matches(one, other))
    return Likeness(shared, len(one.boxes) + len(other.boxes))


def likeness_of_tensors(one: Array, other: Array) -> float:
    """Return ``2ab / (aa + bb)``: 1 where they are equal, 0 where they have nothing in common.

    Like the cosine, but twice as much is not the same. What is no finite number counts as equal
    only where it is none in both.
    """
    if one.shape != other.shape:
        return 0.0
    left, right = one.astype(np.float64).ravel(), other.astype(np.float64).ravel()
    finite = np.isfinite(left)
    if not np.array_equal(finite, np.isfinite(right)):
        return 0.0
    left, right = left[finite], right[finite]
    power = float(left @ left + right @ right)
    return max(0.0, 2 * float(left @ right) / power) if power > 0 else 1.0


def _ious(one: Array, other: Array) -> Array:
    """Return intersection over union of every pair: [N, M]."""
    low = np.maximum(one[:, None, :2], other[None, :, :2])
    high = np.minimum(one[:, None, 2:], other[None, :, 2:])
    both: Array = np.prod(np.maximum(high - low, 0.0), axis=2, dtype=np.float64)
    areas = [np.prod(each[:, 2:] - each[:, :2], axis=1, dtype=np.float64) for each in (one, other)]
    either = areas[0][:, None] + areas[1][None] - both
    overlaps: Array = np.divide(both, either, out=np.zeros_like(both), where=either > 0)
    return overlaps

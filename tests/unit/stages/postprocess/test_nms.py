"""NMS against a plain reference."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from edgert.stages.postprocess.nms import MAX_CANDIDATES, suppress


def iou_of(a, b) -> float:
    width = min(a[2], b[2]) - max(a[0], b[0])
    height = min(a[3], b[3]) - max(a[1], b[1])
    if width <= 0 or height <= 0:
        return 0.0
    both = width * height
    return both / ((a[2] - a[0]) * (a[3] - a[1]) + (b[2] - b[0]) * (b[3] - b[1]) - both)


def reference(boxes, scores, classes, iou) -> list[int]:
    kept: list[int] = []
    for i in sorted(range(len(boxes)), key=lambda i: (-scores[i], i)):
        if all(classes[i] != classes[k] or iou_of(boxes[i], boxes[k]) <= iou for k in kept):
            kept.append(i)
    return kept


coordinates = st.integers(-40, 40)
lengths = st.integers(1, 30)
box = st.tuples(coordinates, coordinates, lengths, lengths)
candidate = st.tuples(box, st.integers(1, 20), st.integers(0, 2))


@given(
    st.lists(candidate, max_size=30),
    st.sampled_from([0.1, 0.25, 0.45, 0.5, 0.7, 0.9]),
    st.sampled_from([1e-3, 1.0, 1e3]),
)
def test_the_same_boxes_stay_as_by_a_plain_reference(found, iou, scale) -> None:
    corners = [(x, y, x + w, y + h) for (x, y, w, h), _, _ in found]
    overlaps = [iou_of(a, b) for a in corners for b in corners]
    assume(all(abs(overlap - iou) > 1e-6 for overlap in overlaps))
    boxes = np.array(corners, np.float64).reshape(-1, 4) * scale
    scores = np.array([score / 20 for _, score, _ in found], np.float32)
    classes = np.array([number for _, _, number in found], np.int32)
    kept = suppress(boxes, scores, classes, iou)
    assert kept.tolist() == reference(corners, scores, classes, iou)


def test_small_numbers_are_not_rounded_away() -> None:
    """Disjoint boxes in fractions both stay (N6)."""
    boxes = np.array([[0.0, 0, 0.2, 0.2], [0.2, 0.2, 0.4, 0.4]])
    kept = suppress(boxes, np.array([0.9, 0.8]), np.zeros(2, np.int32), 0.45)
    assert kept.tolist() == [0, 1]


@pytest.mark.parametrize(("classes", "kept"), [([0, 1], [0, 1]), ([1, 1], [0])])
def test_classes_do_not_suppress_each_other(classes, kept) -> None:
    """A car under a truck stays (N4)."""
    boxes = np.array([[0.0, 0, 100, 100], [0, 0, 100, 95]])
    found = suppress(boxes, np.array([0.9, 0.8]), np.array(classes, np.int32), 0.45)
    assert found.tolist() == kept


def test_nothing_stays_of_nothing() -> None:
    assert len(suppress(np.empty((0, 4)), np.empty(0), np.empty(0, np.int32), 0.5)) == 0


def test_the_best_are_looked_at_where_there_are_too_many() -> None:
    count = MAX_CANDIDATES + 50
    left = np.arange(count) * 2.0
    boxes = np.stack([left, np.zeros(count), left + 1, np.ones(count)], axis=1)
    scores = np.linspace(0.1, 0.9, count)
    kept = suppress(boxes, scores, np.zeros(count, np.int32), 0.5)
    assert kept.tolist() == list(range(count - 1, count - 1 - MAX_CANDIDATES, -1))

"""How alike two results are: 1 where they are equal, 0 where they share nothing, never more."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from edgert.results.likeness import Found, Likeness, likeness_of_boxes, likeness_of_tensors

VALUES = st.floats(-1e6, 1e6, width=32)
TENSORS = arrays.arrays(np.float32, (3, 4), elements=VALUES)


def found(*rows: tuple[float, float, float, float, int]) -> Found:
    table = np.array(rows, np.float64).reshape(-1, 5)
    return Found(table[:, :4], np.ones(len(table)), table[:, 4].astype(np.int64))


BOXES = st.lists(
    st.tuples(
        st.integers(0, 20),
        st.integers(0, 20),
        st.integers(1, 9),
        st.integers(1, 9),
        st.integers(0, 1),
    ).map(lambda row: (row[0], row[1], row[0] + row[2], row[1] + row[3], row[4])),
    max_size=6,
).map(lambda rows: found(*rows))


@given(TENSORS, TENSORS)
def test_tensors(one: np.ndarray, other: np.ndarray) -> None:
    alike = likeness_of_tensors(one, other)
    assert 0 <= alike <= 1 + 1e-9
    assert alike == likeness_of_tensors(other, one)
    assert likeness_of_tensors(one, one) == pytest.approx(1)


def test_tensors_by_their_size_and_what_is_no_number() -> None:
    one = np.array([1.0, 2.0, np.inf], np.float32)
    assert likeness_of_tensors(one, one) == 1
    assert likeness_of_tensors(one, np.array([1.5, 3.0, np.inf], np.float32)) == pytest.approx(
        12 / 13
    )
    assert likeness_of_tensors(one, np.array([1.0, 2.0, 3.0], np.float32)) == 0
    assert likeness_of_tensors(one, -one) == 0
    assert likeness_of_tensors(one, one[:2]) == 0
    assert likeness_of_tensors(np.zeros((0, 3)), np.zeros((0, 3))) == 1


@given(BOXES, BOXES)
def test_boxes(one: Found, other: Found) -> None:
    alike = likeness_of_boxes(one, other)
    assert 0 <= alike.shared <= alike.both + 1e-9
    assert alike.both == len(one.boxes) + len(other.boxes)
    assert math.isclose(likeness_of_boxes(other, one).shared, alike.shared)
    same = likeness_of_boxes(one, one)
    assert math.isclose(same.shared, same.both)


def test_boxes_of_other_classes_and_without_a_partner_share_nothing() -> None:
    one = found((0, 0, 10, 10, 0), (50, 50, 60, 60, 0))
    assert likeness_of_boxes(one, found((0, 0, 10, 10, 1))) == Likeness(0, 3)
    assert likeness_of_boxes(one, found((2, 0, 12, 10, 0))) == Likeness(
        pytest.approx(2 * 8 / 12), 3
    )
    assert likeness_of_boxes(found(), found()) == Likeness(0, 0)

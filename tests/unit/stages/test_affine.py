from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgert.stages.geometry import (
    clip_boxes,
    compose,
    inverse,
    map_boxes,
    map_point,
    map_points,
)
from edgert.tensor import IDENTITY

numbers = st.floats(-100, 100)
affines = st.tuples(numbers, numbers, numbers, numbers, numbers, numbers)


@given(affines, affines, numbers, numbers)
def test_compose_applies_the_inner_transform_first(outer, inner, x, y) -> None:
    by_hand = map_point(outer, *map_point(inner, x, y))
    assert map_point(compose(outer, inner), x, y) == pytest.approx(by_hand, rel=1e-6, abs=1e-6)


scales = st.floats(0.1, 10) | st.floats(-10, -0.1)


@given(st.tuples(scales, numbers, numbers, st.just(0.0), scales, numbers), numbers, numbers)
def test_the_inverse_leads_back(transform, x, y) -> None:
    there = map_point(transform, x, y)
    assert map_point(inverse(transform), *there) == pytest.approx((x, y), rel=1e-6, abs=1e-4)


@given(affines, st.lists(st.tuples(numbers, numbers), max_size=4))
def test_many_points_go_where_each_goes_alone(transform, points) -> None:
    mapped = map_points(np.array(points).reshape(-1, 2), transform)
    assert mapped.tolist() == [list(map_point(transform, *point)) for point in points]


@given(affines)
def test_the_identity_changes_nothing(transform) -> None:
    assert compose(IDENTITY, transform) == transform
    assert compose(transform, IDENTITY) == transform


@pytest.mark.parametrize(
    ("transform", "expected"),
    [
        ((2.0, 0, 1.0, 0, 3.0, -1.0), (3, 5, 7, 20)),
        ((0, -1.0, 10.0, 1.0, 0, 0), (3, 1, 8, 3)),  # a quarter turn
        ((-1.0, 0, 10.0, 0, 1.0, 0), (7, 2, 9, 7)),  # a mirror
    ],
)
def test_boxes_stay_upright_and_whole(transform, expected) -> None:
    mapped = map_boxes(np.array([[1.0, 2.0, 3.0, 7.0]]), transform)
    assert mapped.tolist() == [list(expected)]


def test_clipping_leaves_no_area_outside_the_frame() -> None:
    boxes = np.array([[-5.0, -5, 5, 5], [20, 20, 30, 30]])
    assert clip_boxes(boxes, 10, 8).tolist() == [[0, 0, 5, 5], [10, 8, 10, 8]]

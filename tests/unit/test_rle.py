from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from edgert.results.rle import mask_of, runs_of

masks = arrays(
    np.uint8, array_shapes(min_dims=2, max_dims=2, max_side=12), elements=st.integers(0, 3)
)


@given(masks)
def test_runs_lead_back_to_the_mask(mask) -> None:
    runs = runs_of(mask)
    assert set(runs) == set(np.unique(mask).tolist()) - {0}
    for class_id, counts in runs.items():
        assert sum(counts) == mask.size
        assert all(count > 0 for count in counts[1:])
        np.testing.assert_array_equal(mask_of(counts, mask.shape), mask == class_id)


def test_runs_go_down_the_columns_and_begin_outside() -> None:
    """The example in the head of COCO's maskApi.h, which also says that 0 may begin."""
    assert runs_of(np.array([[0, 0, 1], [1, 1, 1]], np.uint8)) == {1: [1, 1, 1, 3]}
    assert runs_of(np.array([[1, 1, 1, 1, 1, 1, 0]], np.uint8)) == {1: [0, 6, 1]}


def test_a_mask_without_pixels_has_no_runs() -> None:
    assert runs_of(np.zeros((0, 4), np.uint8)) == {}

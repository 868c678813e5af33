"""A result in which no number is finite is found; everything else passes."""

from __future__ import annotations

import numpy as np
import pytest

from edgert.stages.look import Look

LOOK = Look(["y"])


@pytest.mark.parametrize("size", [1, 31, 32, 1000, 3549 * 85])
def test_what_is_nan_or_infinite_throughout_is_found(size: int) -> None:
    for value in (np.nan, np.inf, -np.inf):
        spoilt = np.full((1, size), value, np.float32)
        assert LOOK.fault({"y": spoilt}) == "its output 'y' is NaN or infinite throughout"
        spoilt[0, size // 3] = 0
        assert not LOOK.fault({"y": spoilt})


def test_an_empty_result_is_not_absurd() -> None:
    assert not LOOK.fault({"y": np.empty((0, 4), np.float32)})

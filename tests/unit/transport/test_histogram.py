"""Percentiles of the histogram against numpy's, to the width of a bucket."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgert.transport.histogram import BUCKETS, bucket_of, middle_ms, percentile_ms, total_ms

durations = st.integers(1_024, 60_000_000_000)  # shorter ones all go to the first bucket
WIDTH = 1 / 32


def counted(values: list[int]) -> list[int]:
    counts = [0] * BUCKETS
    for value in values:
        counts[bucket_of(value)] += 1
    return counts


@given(st.lists(durations, min_size=1, max_size=200), st.sampled_from([0.5, 0.9, 0.95, 0.99, 1.0]))
def test_percentiles_are_those_of_numpy(values: list[int], share: float) -> None:
    expected_ms = float(np.percentile(values, share * 100, method="inverted_cdf")) / 1e6
    found_ms = percentile_ms(counted(values), share)
    assert found_ms == pytest.approx(expected_ms, rel=WIDTH)


@given(st.lists(durations, min_size=1, max_size=200))
def test_the_total_is_the_sum(values: list[int]) -> None:
    assert total_ms(counted(values)) == pytest.approx(sum(values) / 1e6, rel=WIDTH)


@given(st.integers(0, 1 << 62), st.integers(0, 1 << 62))
def test_buckets_are_in_order(one: int, other: int) -> None:
    low, high = sorted((one, other))
    assert 0 <= bucket_of(low) <= bucket_of(high) < BUCKETS


@given(st.integers(0, BUCKETS - 1))
def test_the_middle_of_a_bucket_lies_in_it(bucket: int) -> None:
    assert bucket_of(int(middle_ms(bucket) * 1e6)) == bucket


def test_nothing_counted_has_no_percentile() -> None:
    assert percentile_ms([0] * BUCKETS, 0.5) is None
    assert total_ms([0] * BUCKETS) == 0

"""What a summary says of times."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgert.runtime.summary import percentiles
from edgert.transport.histogram import BUCKETS, bucket_of


@given(st.lists(st.integers(1_000, 10**11), min_size=1))
def test_no_percentile_lies_above_the_longest_time(times_ns: list[int]) -> None:
    counts = [0] * BUCKETS
    for one in times_ns:
        counts[bucket_of(one)] += 1
    found = percentiles(counts, max(times_ns))
    assert found.p50 is not None
    assert found.p95 is not None
    assert found.p99 is not None
    assert found.max == pytest.approx(max(times_ns) / 1e6, abs=1e-3)
    assert found.p50 <= found.p95 <= found.p99 <= found.max


def test_where_nothing_was_counted_there_is_no_time() -> None:
    assert percentiles([0] * BUCKETS).p99 is None

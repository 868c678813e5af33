"""Durations as counts in logarithmic buckets, in memory that outlives the process that counts.

32 buckets to a power of two (3 % wide), from 1 us to 137 s: the layout of HDR histograms
(Gil Tene), small enough to lie in the ledger and cheap enough to be written for each frame.
"""

from __future__ import annotations

from collections.abc import Sequence

SUB_BITS = 5
SUB = 1 << SUB_BITS
LOWEST_BIT = 10  # 2**10 ns = 1 us
HIGHEST_BIT = 37
BUCKETS = (HIGHEST_BIT - LOWEST_BIT) * SUB


def bucket_of(duration_ns: int) -> int:
    """Return the bucket that counts a duration; too short or too long go to the ends."""
    bit = duration_ns.bit_length() - 1
    if bit < LOWEST_BIT:
        return 0
    if bit >= HIGHEST_BIT:
        return BUCKETS - 1
    return ((bit - LOWEST_BIT) << SUB_BITS) + ((duration_ns >> (bit - SUB_BITS)) & (SUB - 1))


def middle_ms(bucket: int) -> float:
    """Return the duration in the middle of a bucket, in milliseconds."""
    bit, sub = divmod(bucket, SUB)
    low = (SUB + sub) << (bit + LOWEST_BIT - SUB_BITS)
    return (low + (1 << (bit + LOWEST_BIT - SUB_BITS)) / 2) / 1e6


def percentile_ms(counts: Sequence[int], share: float) -> float | None:
    """Return the duration that ``share`` (0-1) of the counted ones do not exceed; None of none."""
    total = sum(counts)
    if not total:
        return None
    rank = max(1, -(-int(total * share * 1_000_000) // 1_000_000))
    seen = 0
    for bucket, count in enumerate(counts):
        seen += count
        if seen >= rank:
            return middle_ms(bucket)
    return middle_ms(len(counts) - 1)


def total_ms(counts: Sequence[int]) -> float:
    """Return the sum of all counted durations, to the width of their buckets."""
    return sum(count * middle_ms(bucket) for bucket, count in enumerate(counts) if count)

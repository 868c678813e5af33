"""Who still holds a frame or a view of one: reference counts tell, at a third of a microsecond."""

from __future__ import annotations

import sys
from collections.abc import Mapping

import numpy as np

from edgert.transport.address import Array


def holders(frames: Mapping[str, object]) -> tuple[int, ...]:
    """Return how often the mapping and each frame in it is held.

    An answer says something only beside another one that the same line's neighbour got.
    """
    return (sys.getrefcount(frames), *map(sys.getrefcount, frames.values()))


def held_elsewhere(arrays: Mapping[str, Array]) -> list[str]:
    """Name the arrays that somebody holds beside this mapping and the one of all shapes' arrays."""
    counts = tuple(map(sys.getrefcount, arrays.values()))
    if max(counts, default=0) <= _BY_TWO_MAPPINGS:
        return []
    return [name for name, now in zip(arrays, counts, strict=True) if now > _BY_TWO_MAPPINGS]


def _count_by_two_mappings() -> int:
    """Return what ``getrefcount`` says of what two mappings hold: versions of Python differ."""
    arrays = {"": np.empty(0)}
    others = dict(arrays)
    (count,) = map(sys.getrefcount, arrays.values())
    others.clear()
    return count


_BY_TWO_MAPPINGS = _count_by_two_mappings()

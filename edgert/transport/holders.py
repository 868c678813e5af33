"""Who still holds a frame or a view of one: reference counts tell, at a third of a microsecond."""

from __future__ import annotations

import gc
import sys
import time
from collections.abc import Callable, Mapping

import numpy as np

from edgert.transport.address import Array

_MOMENT_S = 0.001


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


def held_for_good(held: Callable[[], list[str]], patience_s: float = 0.0) -> list[str]:
    """Name what is held neither by a cycle alone nor by a call that is about to return.

    Args:
        held: Names what is held now.
        patience_s: How long threads may take to return.
    """
    if not held():
        return []
    deadline_s = time.monotonic() + patience_s
    time.sleep(min(_MOMENT_S, patience_s))
    if held():
        gc.collect()  # what only a cycle holds (a caught exception, say) is not kept
    while (names := held()) and time.monotonic() < deadline_s:
        time.sleep(_MOMENT_S)
    return names


def _count_by_two_mappings() -> int:
    """Return what ``getrefcount`` says of what two mappings hold: versions of Python differ."""
    arrays = {"": np.empty(0)}
    others = dict(arrays)
    (count,) = map(sys.getrefcount, arrays.values())
    others.clear()
    return count


_BY_TWO_MAPPINGS = _count_by_two_mappings()

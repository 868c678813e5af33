"""The fewest nodes that still show a fault: halving from both ends, then leaving out one by one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

Shows = Callable[[Sequence[str]], bool]
_MOST_ONE_BY_ONE = 64


def shrink(nodes: Sequence[str], shows: Shows) -> list[str]:
    """Return a part of some nodes, in their order, that shows the fault.

    Whatever is returned has shown it. It is the smallest where every larger part shows it, too.

    Args:
        nodes: They show the fault.
        shows: Whether some nodes alone show it.
    """
    kept = list(nodes)
    while True:
        before = len(kept)
        kept = kept[: _fewest(len(kept), partial(_shows_head, kept, shows))]
        kept = kept[len(kept) - _fewest(len(kept), partial(_shows_tail, kept, shows)) :]
        if len(kept) == before:
            return _one_by_one(kept, shows) if before <= _MOST_ONE_BY_ONE else kept


def _shows_head(nodes: Sequence[str], shows: Shows, count: int) -> bool:
    return shows(nodes[:count])


def _shows_tail(nodes: Sequence[str], shows: Shows, count: int) -> bool:
    return shows(nodes[len(nodes) - count :])


def _fewest(enough: int, shows: Callable[[int], bool]) -> int:
    """Return the smallest count that shows the fault, by halving; ``enough`` does."""
    too_few = 0
    while enough - too_few > 1:
        middle = (too_few + enough) // 2
        if shows(middle):
            enough = middle
        else:
            too_few = middle
    return enough


def _one_by_one(nodes: list[str], shows: Shows) -> list[str]:
    """Leave out every node in the middle without which the fault still shows."""
    kept = list(nodes)
    for node in nodes[1:-1]:
        fewer = [each for each in kept if each != node]
        if shows(fewer):
            kept = fewer
    return kept

"""Which of several workers gets the next frame: the one that is expected to finish it first.

Plain functions of what the ledger shows, without a clock and without memory of their own.

    expected end = pace x (frames before it + 1) - what the present frame has had already

A worker that loses frames counts as slower with each (it gets less), after ``OUT_AFTER`` in a row
it gets nothing, then one frame now and then, at growing intervals, until one of them goes well. So
does one that has become much slower than it was: as it is given nothing, nobody would ever know
that it has recovered. One that holds frames and finishes none counts as slower the longer it does.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

OUT_AFTER = 3
SLOW_FROM = 1.5  # times its best pace
STUCK_FROM = 2  # times its pace
BETTER_BELOW = 0.9  # of its pace at the last look
FIRST_TRIAL_NS = 1_000_000_000
LAST_DOUBLING = 5  # 32 s


class Seen(NamedTuple):
    """A worker as the ledger shows it.

    Attributes:
        done: Frames that went well, so far.
        lost: Frames that did not.
        under_way: Frames that it has been given and has not answered for.
        pace_ns: Of late, from one result to the next while it has work; 0 where none is known.
        is_away: Whether there is no process that could take a frame (``runtime/absences.py``).
    """

    done: int
    lost: int
    under_way: int
    pace_ns: int
    is_away: bool = False


class Standing(NamedTuple):
    """What is remembered of a worker from one look to the next.

    Attributes:
        done: As of the last look.
        lost: As of the last look.
        failures: Frames lost since one went well.
        moved_ns: When it was last seen to finish a frame, or to have none.
        pace_ns: As of the last look.
        best_ns: The best pace it has shown.
        trials: How often it was tried since it was last in order.
        try_at_ns: When it may be tried again.
    """

    done: int = 0
    lost: int = 0
    failures: int = 0
    moved_ns: int = 0
    pace_ns: int = 0
    best_ns: int = 0
    trials: int = 0
    try_at_ns: int = 0


def look(before: Standing, seen: Seen, now_ns: int) -> Standing:
    """Return how a worker stands now."""
    went_well = seen.done > before.done
    moved = went_well or not seen.under_way or not before.moved_ns
    lost = max(0, seen.lost - before.lost)
    best_ns = min(before.best_ns or seen.pace_ns, seen.pace_ns) if seen.pace_ns else before.best_ns
    after = before._replace(
        done=seen.done,
        lost=seen.lost,
        failures=lost if went_well else before.failures + lost,
        moved_ns=now_ns if moved or lost else before.moved_ns,
        pace_ns=seen.pace_ns,
        best_ns=best_ns,
    )
    if in_order(after, seen):
        return after._replace(trials=0, try_at_ns=0)
    if seen.pace_ns < BETTER_BELOW * before.pace_ns:
        return after._replace(trials=0, try_at_ns=now_ns)  # it recovers: the next trial at once
    return after if after.try_at_ns else after._replace(try_at_ns=now_ns + FIRST_TRIAL_NS)


def in_order(standing: Standing, seen: Seen) -> bool:
    """Whether a worker does what it did at its best."""
    return standing.failures < OUT_AFTER and seen.pace_ns <= SLOW_FROM * standing.best_ns


def may_try(standing: Standing, seen: Seen, now_ns: int) -> bool:
    """Whether a worker that is not in order is to get one frame, to see whether it is again."""
    return bool(standing.try_at_ns) and now_ns >= standing.try_at_ns and not seen.under_way


def tried(standing: Standing, now_ns: int) -> Standing:
    """Return how a worker stands when it has been given a frame to see."""
    doubled = min(standing.trials + 1, LAST_DOUBLING)
    return standing._replace(
        trials=standing.trials + 1, try_at_ns=now_ns + (FIRST_TRIAL_NS << doubled)
    )


def expected_ns(standing: Standing, seen: Seen, now_ns: int) -> int:
    """Return how long a frame would take that is given to a worker now."""
    pace_ns = seen.pace_ns
    had_ns = now_ns - standing.moved_ns if seen.under_way else 0
    if had_ns > STUCK_FROM * pace_ns:
        pace_ns = had_ns
    whole_ns = pace_ns * (seen.under_way + 1) - min(had_ns, seen.pace_ns)
    return whole_ns * (1 + standing.failures)


def choose(standings: Sequence[Standing], seen: Sequence[Seen], now_ns: int) -> int:
    """Return the number of the worker that gets the next frame.

    One that is due for a trial comes first; one that is out comes late, one that is away last.
    """
    ranks = [
        (_rank(standing, each, now_ns), expected_ns(standing, each, now_ns), number)
        for number, (standing, each) in enumerate(zip(standings, seen, strict=True))
    ]
    return min(ranks)[2]


def _rank(standing: Standing, seen: Seen, now_ns: int) -> int:
    if seen.is_away:
        return 3
    if may_try(standing, seen, now_ns):
        return 0
    return 1 if standing.failures < OUT_AFTER else 2

"""Figures of what was watched: plain functions of samples and times."""

from __future__ import annotations

import math
import statistics
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple, TypeAlias

from tools.soaking.harm import Harm
from tools.soaking.watch import Sample

Wait: TypeAlias = tuple[float, str]
Memory: TypeAlias = Callable[[Sample], float]

HOUR_S = 3600.0
AFTER_S = 3.0
SETTLED_S = 180.0  # a new process first gets the memory that it works in; a camera's takes so long
SEEN_S = 300.0  # of settled lives together: less tells the allocator's steps, no trend


class Slope(NamedTuple):
    """A trend by least squares, and its standard error; none where too little was seen."""

    mb_an_hour: float | None
    error: float | None


def slope(lives: Iterable[Sequence[tuple[float, float]]]) -> Slope:
    """Return the trend of (seconds, MB) that all lives have in common, whatever each began with."""
    points = [centred for life in lives if len(life) > 1 for centred in around_means(life)]
    spread = sum(t * t for t, _ in points)
    if len(points) < 5 or not spread:
        return Slope(None, None)
    rise = sum(t * y for t, y in points) / spread
    rest = sum((y - rise * t) ** 2 for t, y in points)
    error = math.sqrt(rest / (len(points) - 2) / spread)
    return Slope(round(rise * HOUR_S, 2), round(error * HOUR_S, 2))


def around_means(life: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """Return points with the means of both taken off."""
    t_mean, y_mean = (statistics.fmean(column) for column in zip(*life, strict=True))
    return [(t - t_mean, y - y_mean) for t, y in life]


def total_slope(samples: Iterable[Sample], memory: Memory) -> Slope:
    """Return the trend of all processes together, of looks that found every part."""
    looks: dict[int, dict[str, Sample]] = defaultdict(dict)
    for sample in samples:
        looks[sample.look][sample.part] = sample
    parts = {part for look in looks.values() for part in look}
    whole = [look.values() for look in looks.values() if look.keys() == parts]
    return slope([[(next(iter(each)).time_s, sum(map(memory, each))) for each in whole]])


def part_slopes(samples: Iterable[Sample]) -> dict[str, Slope]:
    """Return the trend of each part's own memory, within the life of each of its processes.

    None of a part whose processes lived too short: first they only get what they work in.
    """
    lives: dict[str, dict[int, list[Sample]]] = defaultdict(lambda: defaultdict(list))
    for sample in samples:
        lives[sample.part][sample.pid].append(sample)
    return {
        part: settled_slope([settled(life) for life in by_pid.values()])
        for part, by_pid in lives.items()
    }


def settled_slope(lives: Sequence[Sequence[tuple[float, float]]]) -> Slope:
    """Return the trend of settled lives; none where they are too short together."""
    seen_s = sum(life[-1][0] - life[0][0] for life in lives if life)
    return slope(lives) if seen_s >= SEEN_S else Slope(None, None)


def settled(life: Sequence[Sample]) -> list[tuple[float, float]]:
    """Return the own memory of a process from when it has settled."""
    return [(s.time_s, s.own_mb) for s in life if s.time_s >= life[0].time_s + SETTLED_S]


def fds(samples: Iterable[Sample]) -> dict[str, tuple[int, int, int]]:
    """Return of each part the fewest fds of the first third, of the last third, and the most.

    The fewest, because a source that connects has some more for a moment.
    """
    parts: dict[str, list[int]] = defaultdict(list)
    for sample in samples:
        parts[sample.part].append(sample.fds)
    found = {}
    for part, counts in parts.items():
        third = max(1, len(counts) // 3)
        found[part] = (min(counts[:third]), min(counts[-third:]), max(counts))
    return found


def longest_gap(times: Sequence[float]) -> float:
    """Return the longest time without a result."""
    return max((b - a for a, b in pairwise(times)), default=0.0)


def longest_silence(times: Sequence[float], harms: Iterable[Harm], stream: str) -> float:
    """Return the longest time without a result in which nothing was being done to the stream."""
    spans = [(h.begun_s, h.ended_s) for h in harms if stream in h.streams]
    return max((b - a - covered(a, b, spans) for a, b in pairwise(times)), default=0.0)


def covered(start_s: float, end_s: float, spans: Sequence[tuple[float, float]]) -> float:
    """Return how much of a time is covered by spans, which may overlap."""
    total, at = 0.0, start_s
    for begun_s, ended_s in sorted(spans):
        until_s = min(end_s, ended_s)
        total += max(0.0, until_s - max(at, begun_s))
        at = max(at, until_s)
    return total


def recoveries(harms: Sequence[Harm], arrivals: Mapping[str, Sequence[float]]) -> dict[str, str]:
    """Return by kind of harm the longest wait for a result of each stream after its end."""
    waits: dict[str, list[Wait]] = defaultdict(list)
    for harm in harms:
        for stream in harm.streams:
            after = wait_after(harm, arrivals.get(stream, ()), harms, stream)
            if after is not None:
                waits[harm.what].append((after, harm.victim))
    return {what: spread(found) for what, found in sorted(waits.items())}


def wait_after(
    harm: Harm, times: Sequence[float], harms: Sequence[Harm], stream: str
) -> float | None:
    """Return the longest wait that began up to ``AFTER_S`` after a harm's end; None where none did.

    Not the first one alone: what was under way behind the part arrives as if nothing had happened.
    """
    ended_s = harm.ended_s
    first = max(0, bisect_right(times, ended_s) - 1)
    last = bisect_right(times, ended_s + AFTER_S)
    spans = [(h.begun_s, h.ended_s) for h in harms if stream in h.streams]
    pairs = [(max(a, ended_s), b) for a, b in pairwise(times[first : last + 1])]
    return max((b - a - covered(a, b, spans) for a, b in pairs), default=None)


def spread(waits: Sequence[Wait]) -> str:
    """Say how many waits there were, how long they took, and what the longest was for."""
    middle = statistics.median(wait_s for wait_s, _ in waits)
    longest_s, victim = max(waits)
    return f"{len(waits)} waits, median {middle:.2f} s, longest {longest_s:.2f} s ({victim})"

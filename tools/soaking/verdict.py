"""The verdict: what was seen, held against bounds."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from operator import attrgetter
from typing import Any

from edgert.wording import counted
from tools.soaking import figures
from tools.soaking.harm import Harm
from tools.soaking.run import Run
from tools.soaking.watch import Watch

# A shorter time tells no trend of a megabyte an hour: what new processes take is more than that.
JUDGED_AFTER_S = 1500.0
MORE_FDS = 4  # a camera over UDP has three sockets and a pipe, and none while it is away


@dataclass(frozen=True, slots=True)
class Bounds:
    """What must hold.

    Attributes:
        mb_an_hour: Memory may grow so much, beyond twice the error of the measurement.
        silence_s: Without results so long, while nothing is being done to a stream.
        warm_up_s: Memory and fds count from then on.
    """

    mb_an_hour: float
    silence_s: float
    warm_up_s: float


def look_at(run: Run, watch: Watch, harms: list[Harm], start_s: float, bounds: Bounds) -> Any:
    """Return the figures of a pipeline."""
    warm = [
        s for s in watch.samples if s.run == run.name and s.time_s >= start_s + bounds.warm_up_s
    ]
    return {
        **run.outcome(),
        "results": {stream: results(watch, harms, stream) for stream in run.streams},
        "judged": bool(warm) and warm[-1].time_s - warm[0].time_s >= JUDGED_AFTER_S,
        "pss_mb": figures.total_slope(warm, attrgetter("pss_mb"))._asdict()
        | {"mean": mean_pss(warm)},
        "own_mb": figures.total_slope(warm, attrgetter("own_mb"))._asdict(),
        "own_mb_by_part": {p: s._asdict() for p, s in figures.part_slopes(warm).items()},
        "fds": {
            part: dict(zip(("first", "last", "most"), counts, strict=True))
            for part, counts in figures.fds(warm).items()
        },
    }


def results(watch: Watch, harms: list[Harm], stream: str) -> dict[str, Any]:
    """Return how the results of a stream came."""
    times, frames = watch.arrivals[stream], watch.frames[stream]
    return {
        "seen": len(frames),
        "out_of_order": sum(b <= a for a, b in pairwise(frames)),
        "longest_gap_s": round(figures.longest_gap(times), 2),
        "longest_silence_s": round(figures.longest_silence(times, harms, stream), 2),
    }


def mean_pss(samples: list[Any]) -> float:
    """Return how much memory a pipeline has, on average."""
    looks = {sample.look for sample in samples}
    return round(sum(sample.pss_mb for sample in samples) / max(1, len(looks)), 1)


def faults(name: str, found: dict[str, Any], bounds: Bounds) -> list[str]:
    """Return every bound that does not hold."""
    said = [
        f"exit code {found['exit_code']}: {found['error']}" if found["exit_code"] else "",
        f"uncounted frames: {found['uncounted']}" if found["uncounted"] else "",
        f"left over: {found['left_over']}" if found["left_over"] else "",
        f"{counted(found['tracebacks'], 'traceback')} in the log" if found["tracebacks"] else "",
        *of_trends(found, bounds),
        *of_results(found, bounds),
    ]
    return [f"{name}: {each}" for each in said if each]


def of_trends(found: dict[str, Any], bounds: Bounds) -> list[str]:
    """Return what grows: memory beyond the error of the measurement, fds of a part."""
    if not found["judged"]:
        return []
    slopes = {"all (PSS)": found["pss_mb"], "all": found["own_mb"], **found["own_mb_by_part"]}
    memory = [
        f"memory of {part} grows by {slope['mb_an_hour']} MB an hour (error {slope['error']})"
        for part, slope in slopes.items()
        if slope["error"] is not None
        and slope["mb_an_hour"] - 2 * slope["error"] > bounds.mb_an_hour
    ]
    fds = [
        f"fds of {part} grow from {counts['first']} to {counts['last']}"
        for part, counts in found["fds"].items()
        if counts["last"] > counts["first"] + MORE_FDS
    ]
    return memory + fds


def of_results(found: dict[str, Any], bounds: Bounds) -> list[str]:
    """Return what is wrong with the results of each stream."""
    said = []
    for stream, result in found["results"].items():
        processed = found["streams"].get(stream, {}).get("processed", 0)
        # One that was written by a sink that was then killed may be counted lost.
        unsaid = found["restarts"].get("results", 0)
        if not processed <= result["seen"] <= processed + unsaid:
            said.append(f"{stream}: {processed} frames processed, {result['seen']} results")
        if result["out_of_order"]:
            said.append(f"{stream}: {result['out_of_order']} results out of order")
        if result["longest_silence_s"] > bounds.silence_s:
            said.append(f"{stream}: no result for {result['longest_silence_s']} s without a reason")
    return said

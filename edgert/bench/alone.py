"""Measures one stage, or the stages of one worker, alone in this fresh process.

It runs on the cores and with the threads of its worker. A source is played again when it ends, any
other stage is fed with recorded frames to and fro, so that each follows its neighbour; one with
several frames in flight has as many as it takes. Beside ``process`` a frame costs here what its
slots cost in a worker too (headers are inherited, tables looked at) and the numbering of its inputs
(about 3 us). Tokens, polls and accounts are not in it.

In a loop a stage never waits. At its pace it sleeps until the next frame is due, as a worker does
whose frames come from another: after each sleep caches and branch predictors are cold.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from edgert.bench.drive import drive
from edgert.bench.meter import Alone, Meter
from edgert.device.cores import pin
from edgert.plan.structs import Plan

_PAUSE_AT_MOST_S = 0.25  # so that a pipeline of a frame a minute is measured, too


class Bench(msgspec.Struct, frozen=True):
    """What every measurement is given.

    Attributes:
        plan: The plan, with other paths of its sinks.
        recording: What ``record`` returned.
        folder: Where its files are.
        seconds: How long is measured.
    """

    plan: Plan
    recording: dict[str, list[tuple[int, int]]]
    folder: str
    seconds: float

    def drive(self, names: Sequence[str], meter: Meter) -> list[Iterator[None]]:
        """Return what runs each of these stages of one worker, on the worker's cores."""
        pin(self.plan.worker_of(names[0]).cores)
        stages = {stage.name: stage for stage in self.plan.stages()}
        folder = Path(self.folder)
        return [drive(self.plan, stages[name], self.recording, folder, meter) for name in names]


def measure(bench: dict[str, Any], stage: str) -> Alone:
    """Measure a stage in a loop; called in a child process.

    Args:
        bench: ``Bench`` as plain values.
        stage: Name of the stage.

    Raises:
        EdgertError: The stage could not be opened, or failed.
    """
    given = msgspec.convert(bench, Bench)
    meter = Meter(given.seconds)
    (frames,) = given.drive([stage], meter)
    for _ in frames:
        meter.count()
    return meter.result()


def measure_at_pace(bench: dict[str, Any], shares: Mapping[str, float], interval_s: float) -> Alone:
    """Measure a worker's stages, one after the other in each turn; called in a child process.

    Args:
        bench: ``Bench`` as plain values.
        shares: The worker's stages in their order -> how many frames each takes in a turn, 1 at
            most.
        interval_s: From one turn to the next.

    Returns:
        What was measured, of turns.

    Raises:
        EdgertError: A stage could not be opened, or failed.
    """
    given = msgspec.convert(bench, Bench)
    meter = Meter(given.seconds)
    pace = Pace(min(interval_s, _PAUSE_AT_MOST_S))
    driven = given.drive(list(shares), meter)
    owed = [0.0] * len(driven)
    while meter.wants_more:
        pause_s = pace.pause_s(time.monotonic())
        if pause_s:
            time.sleep(pause_s)
        for number, share in enumerate(shares.values()):
            owed[number] += share
            if owed[number] >= 1:
                owed[number] -= 1
                next(driven[number])
        meter.count()
    for frames in driven:
        next(frames, None)  # lets it end
    return meter.result()


class Pace:
    """Says when the next frame is due; what comes late is not made up for by frames in a row.

    Args:
        interval_s: From one frame to the next.
    """

    def __init__(self, interval_s: float) -> None:
        self._interval_s = interval_s
        self._due_s = 0.0

    def pause_s(self, now_s: float) -> float:
        """Return how long to wait for the next frame."""
        self._due_s = max(self._due_s + self._interval_s, now_s)
        return self._due_s - now_s

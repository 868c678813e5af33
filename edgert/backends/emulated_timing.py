"""How long the inferences of the emulated accelerator take; prepared, so that one costs a call."""

from __future__ import annotations

import math
from collections.abc import Callable
from statistics import NormalDist

import numpy as np

from edgert.backends.emulated_options import EmulatedOptions, Latency, Slow

# Seconds that inference n takes, from 0.
Duration = Callable[[int], float]
PERIOD = 1000
_SHARES = (np.arange(PERIOD) + 0.5) / PERIOD


def duration_of(options: EmulatedOptions, items: int) -> Duration:
    """Return what tells how long an inference of a batch of ``items`` takes."""
    batch_ms = options.per_item_ms * items
    table = [(ms + batch_ms) / 1e3 for ms in _times_ms(options.latency_ms, options.seed)]
    duration = _always(table[0]) if len(table) == 1 else _in_turn(table)
    return _slower(duration, options.faults.slow_after) if options.faults.slow_after else duration


def _times_ms(latency: Latency, seed: int) -> list[float]:
    """Return one time, or a spread's quantiles in a random order: a period has its percentiles."""
    if latency.p50 is not None and latency.p99 is not None:
        normal = NormalDist()
        width = math.log(latency.p99 / latency.p50) / normal.inv_cdf(0.99)
        times = [latency.p50 * math.exp(width * normal.inv_cdf(share)) for share in _SHARES]
    else:
        least, most = latency.min or 0.0, latency.max or 0.0
        if least == most:
            return [least]
        times = [least + share * (most - least) for share in _SHARES]
    np.random.default_rng(seed).shuffle(times)
    return [float(each) for each in times]


def _always(duration_s: float) -> Duration:
    return lambda _: duration_s


def _in_turn(table: list[float]) -> Duration:
    return lambda n: table[n % PERIOD]


def _slower(duration: Duration, slow: Slow) -> Duration:
    return lambda n: duration(n) * (slow.factor if n >= slow.inferences else 1.0)

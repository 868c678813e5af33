"""How long an inference takes."""

from __future__ import annotations

import time
from collections.abc import Callable
from statistics import median


def median_ms(infer: Callable[[], object], runs: int) -> float | None:
    """Return the median of some inferences; None where none is asked for."""
    times_s = []
    for _ in range(runs):
        start_s = time.perf_counter()
        infer()
        times_s.append(time.perf_counter() - start_s)
    return round(median(times_s) * 1e3, 4) if times_s else None

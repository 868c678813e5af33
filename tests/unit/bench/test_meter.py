"""When there is enough, and what is counted until then."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest

from edgert.bench.meter import LEAST_FRAMES, WARM_UP_FRAMES, Meter


@pytest.fixture(autouse=True)
def _gc_as_it_was() -> Iterator[None]:
    yield
    gc.unfreeze()
    gc.enable()


def count_to_the_end(meter: Meter) -> int:
    counted = 0
    while meter.wants_more:
        meter.count()
        counted += 1
    return counted


def test_the_warm_up_does_not_count() -> None:
    meter = Meter(1e-6)
    meter.go_on()
    counted = count_to_the_end(meter)
    alone = meter.result()
    assert alone.frames >= LEAST_FRAMES
    assert counted >= alone.frames + WARM_UP_FRAMES
    assert alone.cpu_ms > 0
    assert alone.fps > 0


def test_time_between_passes_does_not_count() -> None:
    meter = Meter(1e-6)
    meter.go_on()
    count_to_the_end(meter)
    alone = meter.result()
    sum(range(3_000_000))
    assert meter.result() == alone

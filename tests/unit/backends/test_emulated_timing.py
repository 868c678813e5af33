"""How long an emulated inference takes, and whose turn it is."""

from __future__ import annotations

import time
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from itertools import repeat
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from edgert.backends.emulated_lanes import OwnLanes, SharedLanes, lanes_of
from edgert.backends.emulated_options import EmulatedOptions
from edgert.backends.emulated_timing import PERIOD, duration_of
from edgert.errors import DeviceError
from tests import models


def times_ms(items: int = 1, **options: Any) -> np.ndarray:
    duration = duration_of(EmulatedOptions.model_validate(options), items)
    return np.array([duration(n) * 1e3 for n in range(2 * PERIOD)])


def test_a_number_is_always_the_same() -> None:
    assert times_ms(latency_ms=20) == pytest.approx(20)


def test_each_item_of_a_batch_adds_to_it() -> None:
    assert times_ms(8, latency_ms=20, per_item_ms=1) == pytest.approx(28)


def test_percentiles_are_those_that_were_asked_for() -> None:
    found = times_ms(latency_ms={"p50": 5, "p99": 20})
    assert np.percentile(found, [50, 99]) == pytest.approx([5, 20], rel=0.02)
    assert found.min() > 0


def test_a_range_is_uniform() -> None:
    found = times_ms(latency_ms={"min": 4, "max": 8})
    assert np.percentile(found, [0, 25, 50, 75, 100]) == pytest.approx([4, 5, 6, 7, 8], abs=0.01)


def test_the_seed_decides() -> None:
    asked = {"latency_ms": {"p50": 5, "p99": 20}}
    first, again, other = (times_ms(**asked, seed=seed) for seed in (3, 3, 4))
    assert (first == again).all()
    assert (first != other).any()


def test_it_becomes_slower_when_asked_to() -> None:
    slow = {"inferences": 10, "factor": 3}
    found = times_ms(latency_ms=2, faults={"slow_after": slow})
    assert found[:10] == pytest.approx(2)
    assert found[10:] == pytest.approx(6)


@pytest.fixture(params=["own", "shared"])
def kind(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    if request.param == "own":
        return OwnLanes
    return lambda count: SharedLanes(tmp_path / f"{count}.lanes", count)


def test_one_lane_does_one_at_a_time(kind: Any) -> None:
    lanes = kind(1)
    assert [lanes.reserve(100.0, 2.0) for _ in range(3)] == [102, 104, 106]
    assert lanes.reserve(110.0, 1.0) == 111


def test_the_lane_that_is_free_first_is_taken(kind: Any) -> None:
    lanes = kind(2)
    assert [lanes.reserve(100.0, each) for each in (5.0, 1.0, 1.0, 1.0)] == [105, 101, 102, 103]


def test_no_two_threads_get_the_same_time(kind: Any) -> None:
    lanes = kind(1)
    with ThreadPoolExecutor(4) as threads:
        ends = list(threads.map(lanes.reserve, repeat(100.0, 400), repeat(1.0)))
    assert sorted(ends) == [101.0 + n for n in range(400)]


def reserve_all(file: Path, count: int) -> list[float]:
    lanes = SharedLanes(file, 1)
    return [lanes.reserve(100.0, 1.0) for _ in range(count)]


def test_no_two_processes_get_the_same_time(tmp_path: Path) -> None:
    file = tmp_path / "d.lanes"
    with ProcessPoolExecutor(2, get_context("spawn")) as processes:
        found = processes.map(reserve_all, [file] * 2, [300] * 2)
        ends = [end for each in found for end in each]
    assert sorted(ends) == [101.0 + n for n in range(600)]


def test_sessions_of_a_process_share_a_device() -> None:
    first = lanes_of("emulated:NPU", "NPU", 1, None)
    assert lanes_of("emulated:NPU", "NPU", 1, None) is first
    assert lanes_of("emulated:NPU.1", "NPU.1", 1, None) is not first
    with pytest.raises(DeviceError, match="it has 1 lanes already, and 2 are asked for"):
        lanes_of("emulated:NPU", "NPU", 2, None)
    del first
    assert lanes_of("emulated:NPU", "NPU", 2, None).count == 2


def test_another_number_of_lanes_in_the_folder_is_refused(tmp_path: Path) -> None:
    held = SharedLanes(tmp_path / "d.lanes", 3)
    with pytest.raises(DeviceError, match="it has 3 lanes already, and 1 are asked for"):
        SharedLanes(tmp_path / "d.lanes", 1)
    assert held.count == 3


@pytest.mark.parametrize(("lanes", "least_ms"), [(1, (20, 40, 60)), (3, (20, 20, 20))])
def test_no_inference_ends_before_its_time(
    lanes: int, least_ms: tuple[int, ...], tmp_path: Path
) -> None:
    model = models.doubling(tmp_path / "m.onnx")
    options = {"latency_ms": 20, "lanes": lanes}
    with models.session_of("emulated", model, options=options, requests=3) as session:
        ended_s: list[float] = []
        x = np.zeros((2, 3), np.float32)
        outputs = [np.zeros((2, 3), np.float32) for _ in range(3)]
        began_s = time.monotonic()
        for output in outputs:
            session.start({"x": x}, {"y": output}, lambda _: ended_s.append(time.monotonic()))
    for end_s, ms in zip(sorted(ended_s), least_ms, strict=True):
        assert end_s - began_s >= ms / 1e3

"""Stages alone, without the process around them."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import msgspec
import pytest

from edgert.bench.alone import FRAME_NS, Feed, Turn, measure
from edgert.bench.record import Recorder
from edgert.bench.slots import Slots
from edgert.errors import RunError
from edgert.tensor import PortSpec, TensorSpec
from edgert.transport.slot import SlotLayout
from tests.process.runs import load
from tests.unit.bench.graphs import Stages, chain, two_streams_joined


@pytest.fixture(autouse=True)
def _gc_as_it_was() -> Iterator[None]:
    yield
    gc.unfreeze()
    gc.enable()


def measured(folder: Path, stages: Stages, stage: str) -> dict[str, Any]:
    plan = load(folder, stages).plan
    with ExitStack() as opened:
        recorder = Recorder(plan, opened)
        recorder.run()
        recording = recorder.save(folder)
    plain = msgspec.to_builtins(plan)
    return measure(plain, stage, recording, str(folder), seconds=0.01)


def test_recorded_frames_come_to_and_fro_and_numbered_on() -> None:
    slots = Slots(SlotLayout.of(PortSpec("numbers", {"n": TensorSpec("i64", (1,))})), 3)
    turns = []
    for value, (loan, sample) in enumerate(zip(slots.loans, slots.samples, strict=True)):
        loan.tensor("n")[:] = value
        loan.finish()
        turns.append(Turn(0, {"n": sample}, [(loan, sample.header)]))
    feed = Feed(turns)
    values, numbers, times = [], [], []
    for _ in range(7):
        sample = feed.take()["n"]
        values.append(int(sample.tensors["n"][0]))
        numbers.append(sample.header.sequence)
        times.append(sample.header.pts_ns)
    assert values == [0, 1, 2, 1, 0, 1, 2]
    assert numbers == list(range(7))
    assert times == [number * FRAME_NS for number in range(7)]


@pytest.mark.parametrize("stage", ["left", "slow", "sum"])
def test_sources_async_stages_and_joins(tmp_path: Path, stage: str) -> None:
    found = measured(tmp_path, two_streams_joined(tmp_path), stage)
    assert found["frames"] > 0
    assert found["cpu_ms"] > 0
    assert found["fps"] > 0


def test_a_source_that_ends_is_played_again(tmp_path: Path) -> None:
    assert measured(tmp_path, chain(tmp_path, count=3), "src")["frames"] > 3


def test_a_copy_is_counted(tmp_path: Path) -> None:
    found = measured(tmp_path, chain(tmp_path, copies=True), "one")
    assert found["copied_bytes"] >= 8 * found["frames"]


def test_a_stage_that_no_frame_reaches_is_an_error(tmp_path: Path) -> None:
    stages = chain(tmp_path, filter=list(range(300)))
    with pytest.raises(RunError, match="stage 'out': none of the recorded frames comes so far"):
        measured(tmp_path, stages, "out")

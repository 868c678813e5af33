"""Stages alone, without the process around them."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import msgspec
import pytest

from edgert.bench.alone import Bench, Pace, measure, measure_at_pace
from edgert.bench.feed import FRAME_NS, Feed, Turn
from edgert.bench.meter import Alone
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


def bench_of(folder: Path, stages: Stages) -> dict[str, Any]:
    plan = load(folder, stages).plan
    with ExitStack() as opened:
        recorder = Recorder(plan, opened)
        recorder.run()
        recording = recorder.save(folder)
    bench: dict[str, Any] = msgspec.to_builtins(Bench(plan, recording, str(folder), 0.01))
    return bench


def measured(folder: Path, stages: Stages, stage: str) -> Alone:
    return measure(bench_of(folder, stages), stage)


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
    assert found.frames > 0
    assert found.cpu_ms > 0
    assert found.fps > 0


@pytest.mark.parametrize("stage", ["left", "slow", "sum"])
def test_at_a_pace_no_frame_comes_before_its_time(tmp_path: Path, stage: str) -> None:
    bench = bench_of(tmp_path, two_streams_joined(tmp_path))
    found = measure_at_pace(bench, {stage: 1.0}, 0.015)
    assert found.cpu_ms > 0
    assert found.fps <= 1.2 / 0.015  # 16 frames take 14 intervals at least, were the first one late


def test_the_stages_of_a_worker_take_their_shares_of_its_turns(tmp_path: Path) -> None:
    files = {name: tmp_path / f"{name}.txt" for name in ("all", "some")}
    stages: Stages = {"src": {"kind": "Numbers", "worker": "one", "count": 300}}
    for name, file in files.items():
        inputs = {"n": "src.n"}
        stages[name] = {"kind": "Write", "worker": "one", "path": str(file), "inputs": inputs}
    bench = bench_of(tmp_path, stages)
    measure_at_pace(bench, {"src": 1.0, "all": 1.0, "some": 0.25}, 0.0)
    lines = {name: len(file.read_text().splitlines()) for name, file in files.items()}
    assert lines["some"] - 1 == (lines["all"] - 1) // 4  # but the end of the stream


def test_what_comes_late_is_not_made_up_for() -> None:
    pace = Pace(2.0)
    asked_s = (100.0, 100.5, 107.0, 107.5, 109.25)
    assert [pace.pause_s(now_s) for now_s in asked_s] == [0.0, 1.5, 0.0, 1.5, 1.75]


def test_a_source_that_ends_is_played_again(tmp_path: Path) -> None:
    assert measured(tmp_path, chain(tmp_path, count=3), "src").frames > 3


def test_a_stage_that_no_frame_reaches_is_an_error(tmp_path: Path) -> None:
    stages = chain(tmp_path, filter=list(range(300)))
    with pytest.raises(RunError, match="stage 'out': none of the recorded frames comes so far"):
        measured(tmp_path, stages, "out")

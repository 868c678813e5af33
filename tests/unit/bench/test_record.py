"""What stages are fed with when they are alone: real frames, as far as the stage before them."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from edgert.bench.record import SKIPPED, Recorder, Recording, file_of
from edgert.bench.slots import Slots
from edgert.errors import RunError
from edgert.plan.structs import Plan
from tests.process.runs import load
from tests.unit.bench.graphs import Stages, chain, two_streams_joined


def recorded(folder: Path, stages: Stages) -> tuple[Plan, Recording]:
    plan = load(folder, stages).plan
    with ExitStack() as opened:
        recorder = Recorder(plan, opened)
        recorder.run()
        return plan, recorder.save(folder)


def numbers(folder: Path, plan: Plan, ring: str) -> list[int]:
    layout = next(each.layout for each in plan.rings if each.name == ring)
    return [int(s.tensors["n"][0]) for s in Slots.load(layout, file_of(folder, ring)).samples]


def test_consecutive_frames_after_the_first_few(tmp_path: Path) -> None:
    plan, recording = recorded(tmp_path, chain(tmp_path))
    most = max(ring.slots for ring in plan.rings)
    expected = list(range(SKIPPED, SKIPPED + most))
    assert recording["src.n"] == [(0, n) for n in expected]
    assert numbers(tmp_path, plan, "src.n") == expected
    assert numbers(tmp_path, plan, "one.n") == [n + 1 for n in expected]


@pytest.mark.parametrize("count", [1, 3, SKIPPED + 1])
def test_of_a_short_stream_what_there_is(tmp_path: Path, count: int) -> None:
    plan, recording = recorded(tmp_path, chain(tmp_path, count=count))
    most = max(ring.slots for ring in plan.rings)
    expected = list(range(max(0, count - most), count))
    assert numbers(tmp_path, plan, "src.n") == expected
    assert len(recording["src.n"]) == len(expected)


def test_headers_tell_stream_and_sequence(tmp_path: Path) -> None:
    plan, recording = recorded(tmp_path, two_streams_joined(tmp_path))
    layout = next(ring.layout for ring in plan.rings if ring.name == "slow.n")
    samples = Slots.load(layout, file_of(tmp_path, "slow.n")).samples
    found = [(sample.header.stream, sample.header.sequence) for sample in samples]
    assert found == recording["slow.n"]
    assert {stream for stream, _ in found} == {0, 1}


def test_a_frame_that_is_filtered_goes_no_further(tmp_path: Path) -> None:
    _, recording = recorded(tmp_path, chain(tmp_path, filter=[SKIPPED + 1]))
    assert (0, SKIPPED + 1) in recording["src.n"]
    assert (0, SKIPPED + 1) not in recording["one.n"]


@pytest.mark.parametrize("source", [{"count": 0}, {"count": 3, "lose": [0, 1, 2]}])
def test_a_source_without_a_frame_is_an_error(tmp_path: Path, source: dict[str, Any]) -> None:
    stages = chain(tmp_path)
    stages["src"] |= source
    with pytest.raises(RunError, match="stage 'src': gave no frame to measure with"):
        recorded(tmp_path, stages)

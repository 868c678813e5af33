"""Measures one stage alone, in this fresh process, on the cores and with the threads of its worker.

The stage never waits: a source is played again when it ends, any other stage is fed with recorded
frames to and fro, so that each follows its neighbour; one with several frames in flight has as many
as it takes. Beside ``process`` a frame costs here what its slots cost in a worker too (headers are
inherited, tables looked at) and the numbering of its inputs (about 3 us). Tokens, polls and
accounts are not in it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import cycle
from pathlib import Path
from queue import SimpleQueue
from typing import Any, NamedTuple

import msgspec

from edgert.bench.meter import Meter
from edgert.bench.opened import opened
from edgert.bench.record import Frame, by_time, file_of
from edgert.bench.slots import Slots
from edgert.device.cores import pin
from edgert.errors import FrameFiltered, FrameLostError, RunError
from edgert.plan.structs import Plan, StagePlan
from edgert.stages.base import AsyncStage, Inputs, Outputs, Source, Stage
from edgert.tensor import FrameHeader
from edgert.transport.slot import Loan, Sample

FRAME_NS = 40_000_000
_MOST_IN_FLIGHT = 64  # of a stage that writes nothing


def measure(
    plan: dict[str, Any],
    stage: str,
    recording: dict[str, list[Sequence[int]]],
    folder: str,
    seconds: float,
) -> dict[str, Any]:
    """Measure a stage; called in a child process.

    Args:
        plan: The plan as plain values.
        stage: Name of the stage.
        recording: What ``record`` returned.
        folder: Where its files are.
        seconds: How long is measured.

    Returns:
        ``meter.Alone`` as plain values.

    Raises:
        EdgertError: The stage could not be opened, or failed.
    """
    whole = msgspec.convert(plan, Plan)
    pin(whole.worker_of(stage).cores)
    stage_plan = next(each for each in whole.stages() if each.name == stage)
    meter = Meter(seconds)
    outputs = _output_sets(whole, stage_plan)
    if stage_plan.is_source:
        copied_bytes = _play(whole, stage_plan, outputs, meter)
    else:
        found = {ring: [(frame[0], frame[1]) for frame in each] for ring, each in recording.items()}
        feed = Feed(_turns(whole, stage_plan, found, Path(folder)))
        with opened(whole, stage_plan) as one:
            if isinstance(one, AsyncStage):
                _run_async(one, feed, outputs, meter)
            else:
                _run_sync(one, feed, outputs, meter)
        copied_bytes = one.context.copied_bytes
    result: dict[str, Any] = msgspec.to_builtins(meter.result(copied_bytes))
    return result


class Turn(NamedTuple):
    """One recorded frame as the stage reads it."""

    stream: int
    inputs: dict[str, Sample]
    headers: list[tuple[Loan, FrameHeader]]


class Feed:
    """Hands out recorded frames to and fro, numbered on as if the stream went on."""

    def __init__(self, turns: Sequence[Turn]) -> None:
        self._turns = cycle([*turns, *turns[-2:0:-1]])
        self._next = dict.fromkeys((turn.stream for turn in turns), 0)

    def take(self) -> Inputs:
        """Return the next frame's samples."""
        turn = next(self._turns)
        number = self._next[turn.stream]
        self._next[turn.stream] = number + 1
        for loan, header in turn.headers:
            loan.set_header(header._replace(sequence=number, pts_ns=number * FRAME_NS))
        for sample in turn.inputs.values():
            sample.refresh()
        return turn.inputs


def _turns(
    plan: Plan, stage: StagePlan, recording: Mapping[str, Sequence[Frame]], folder: Path
) -> list[Turn]:
    """Load what the stage reads: a turn for each frame that all of its inputs have."""
    rings = {edge.name: ring for ring in plan.rings for edge in ring.edges}
    ports: list[tuple[str, dict[Frame, tuple[Sample, Loan]]]] = []
    for port, edges in stage.inputs.items():
        held: dict[Frame, tuple[Sample, Loan]] = {}
        for ring in {rings[edge].name: rings[edge] for edge in edges}.values():
            slots = Slots.load(ring.layout, file_of(folder, ring.name))
            held |= dict(
                zip(
                    recording[ring.name],
                    zip(slots.samples, slots.loans, strict=True),
                    strict=True,
                )
            )
        ports.append((port, held))
    frames = set.intersection(*(set(held) for _, held in ports))
    if not frames:
        raise RunError(f"stage '{stage.name}'", "none of the recorded frames comes so far")
    return [
        _turn(frame[0], {port: held[frame] for port, held in ports})
        for frame in sorted(frames, key=by_time)
    ]


def _turn(stream: int, held: Mapping[str, tuple[Sample, Loan]]) -> Turn:
    headers = [(loan, sample.header) for sample, loan in held.values()]
    return Turn(stream, {port: sample for port, (sample, _) in held.items()}, headers)


def _output_sets(plan: Plan, stage: StagePlan) -> list[Outputs]:
    """Return loans for as many frames as the rings behind the stage have room for."""
    rings = {ring.name: ring for ring in plan.rings}
    slots = {
        port: Slots(rings[name].layout, rings[name].slots) for port, name in stage.outputs.items()
    }
    count = min((len(each.loans) for each in slots.values()), default=_MOST_IN_FLIGHT)
    return [{port: each.loans[index] for port, each in slots.items()} for index in range(count)]


def _play(plan: Plan, stage: StagePlan, outputs: Sequence[Outputs], meter: Meter) -> int:
    """Run a source until there is enough, from its start again wherever it ends."""
    copied_bytes = 0
    while True:
        with opened(plan, stage) as source:
            if not isinstance(source, Source):
                raise TypeError(f"{stage.name} has no inputs and is no source")
            meter.go_on()
            wants_more = all(meter.count() for _ in _frames(source, outputs))
            copied_bytes += source.context.copied_bytes
            if not wants_more:
                return copied_bytes
            meter.pause()


def _frames(source: Source, outputs: Sequence[Outputs]) -> Iterator[None]:
    for loans in cycle(outputs):
        try:
            header = source.grab()
            if header is None:
                return
            for loan in loans.values():
                loan.set_header(header)
            source.write(loans)
        except FrameLostError:
            continue
        for loan in loans.values():
            loan.finish()
        yield


def _run_sync(stage: Stage, feed: Feed, outputs: Sequence[Outputs], meter: Meter) -> None:
    for loans in cycle(outputs):
        inputs = feed.take()
        _inherit(inputs, loans)
        try:
            stage.process(inputs, loans)
        except (FrameFiltered, FrameLostError):
            pass
        else:
            _finish(loans)
        if not meter.count():
            return


def _run_async(stage: AsyncStage, feed: Feed, outputs: Sequence[Outputs], meter: Meter) -> None:
    ended: SimpleQueue[tuple[Outputs, BaseException | None]] = SimpleQueue()
    in_flight = 0

    def start(loans: Outputs) -> None:
        inputs = feed.take()
        _inherit(inputs, loans)
        try:
            stage.start(inputs, loans, lambda error: ended.put((loans, error)))
        except (FrameFiltered, FrameLostError) as error:
            ended.put((loans, error))

    for loans in outputs[: stage.capacity]:
        start(loans)
        in_flight += 1
    wants_more = True
    while in_flight:
        loans, error = ended.get()
        in_flight -= 1
        if error is not None and not isinstance(error, (FrameFiltered, FrameLostError)):
            raise error
        _finish(loans)
        wants_more = wants_more and meter.count()
        if wants_more:
            start(loans)
            in_flight += 1


def _inherit(inputs: Inputs, loans: Outputs) -> None:
    first = next(iter(inputs.values()))
    for loan in loans.values():
        loan.inherit(first)


def _finish(loans: Outputs) -> None:
    for loan in loans.values():
        loan.finish()

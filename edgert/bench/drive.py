"""Runs one stage on recorded frames, as a generator: whoever asks for the next sets the pace."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from itertools import cycle
from pathlib import Path
from queue import SimpleQueue

from edgert.bench.feed import Feed, turns_of
from edgert.bench.meter import Meter
from edgert.bench.opened import opened
from edgert.bench.record import Frame
from edgert.bench.slots import Slots
from edgert.errors import FrameFiltered, FrameLostError
from edgert.plan.structs import Plan, StagePlan
from edgert.stages.base import AsyncStage, Inputs, Outputs, Source, Stage

_MOST_IN_FLIGHT = 64  # of a stage that writes nothing


def drive(
    plan: Plan,
    stage: StagePlan,
    recording: Mapping[str, Sequence[Frame]],
    folder: Path,
    meter: Meter,
) -> Iterator[None]:
    """Open a stage, and run one frame each time it is asked, as long as the meter wants more.

    Asked once more after that, it ends the stage's streams, closes it and stops.

    Args:
        plan: The plan.
        stage: The stage, one of it.
        recording: What ``record`` returned.
        folder: Where its files are.
        meter: Says when there is enough; told where a source begins anew.

    Raises:
        EdgertError: The stage could not be opened, or failed.
    """
    outputs = _output_sets(plan, stage)
    if stage.is_source:
        yield from _play(plan, stage, outputs, meter)
        return
    feed = Feed(turns_of(plan, stage, recording, folder))
    with opened(plan, stage) as one:
        if isinstance(one, AsyncStage):
            yield from _run_async(one, feed, outputs, meter)
        else:
            yield from _run_sync(one, feed, outputs, meter)


def _output_sets(plan: Plan, stage: StagePlan) -> list[Outputs]:
    """Return loans for as many frames as the rings behind the stage have room for."""
    rings = {ring.name: ring for ring in plan.rings}
    slots = {
        port: Slots(rings[name].layout, rings[name].slots) for port, name in stage.outputs.items()
    }
    count = min((len(each.loans) for each in slots.values()), default=_MOST_IN_FLIGHT)
    return [{port: each.loans[index] for port, each in slots.items()} for index in range(count)]


def _play(plan: Plan, stage: StagePlan, outputs: Sequence[Outputs], meter: Meter) -> Iterator[None]:
    """Run a source, from its start again wherever it ends."""
    while True:
        with opened(plan, stage) as source:
            if not isinstance(source, Source):
                raise TypeError(f"{stage.name} has no inputs and is no source")
            meter.go_on()
            yield from _frames(source, outputs, meter)
            if not meter.wants_more:
                return
            meter.pause()


def _frames(source: Source, outputs: Sequence[Outputs], meter: Meter) -> Iterator[None]:
    for loans in cycle(outputs):
        if not meter.wants_more:
            return
        try:
            header = source.grab()
            if header is None:
                return
            for loan in loans.values():
                loan.set_header(header)
            source.write(loans)
        except FrameLostError:
            continue
        _finish(loans)
        yield


def _run_sync(stage: Stage, feed: Feed, outputs: Sequence[Outputs], meter: Meter) -> Iterator[None]:
    for loans in cycle(outputs):
        if not meter.wants_more:
            return
        inputs = feed.take()
        _inherit(inputs, loans)
        try:
            stage.process(inputs, loans)
        except (FrameFiltered, FrameLostError):
            pass
        else:
            _finish(loans)
        yield


def _run_async(
    stage: AsyncStage, feed: Feed, outputs: Sequence[Outputs], meter: Meter
) -> Iterator[None]:
    """Begin one frame more each time; as soon as the stage has room for it."""
    ended: SimpleQueue[tuple[Outputs, BaseException | None]] = SimpleQueue()
    idle = deque(outputs[: stage.capacity])
    room = len(idle)

    def start(loans: Outputs) -> None:
        inputs = feed.take()
        _inherit(inputs, loans)
        try:
            stage.start(inputs, loans, lambda error: ended.put((loans, error)))
        except (FrameFiltered, FrameLostError) as error:
            ended.put((loans, error))

    def end_one() -> None:
        loans, error = ended.get()
        if error is not None and not isinstance(error, (FrameFiltered, FrameLostError)):
            raise error
        _finish(loans)
        idle.append(loans)

    while meter.wants_more:
        while not (idle and ended.empty()):
            end_one()
        start(idle.popleft())
        yield
    while len(idle) < room:
        end_one()


def _inherit(inputs: Inputs, loans: Outputs) -> None:
    first = next(iter(inputs.values()))
    for loan in loans.values():
        loan.inherit(first)


def _finish(loans: Outputs) -> None:
    for loan in loans.values():
        loan.finish()

"""Feeds a stage with recorded frames, so that it never waits for another one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import cycle
from pathlib import Path
from typing import NamedTuple

from edgert.bench.record import Frame, by_time, file_of
from edgert.bench.slots import Slots
from edgert.errors import RunError
from edgert.plan.structs import Plan, StagePlan
from edgert.stages.base import Inputs
from edgert.tensor import FrameHeader
from edgert.transport.slot import Loan, Sample

FRAME_NS = 40_000_000


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


def turns_of(
    plan: Plan, stage: StagePlan, recording: Mapping[str, Sequence[Frame]], folder: Path
) -> list[Turn]:
    """Load what the stage reads: a turn for each frame that all of its inputs have.

    Raises:
        RunError: There is no such frame.
    """
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

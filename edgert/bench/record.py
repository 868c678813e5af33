"""Records what each stage of a pipeline reads: real frames, taken through the stages before it.

Runs in a process of its own, so that no stage that is measured shares one with another's libraries.
Of each stream the frames just after the first few are kept (films begin black), consecutive ones:
as many as the fullest ring of the plan has room for, so that caches are as warm as in the run.
"""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import Any

import msgspec

from edgert.bench.opened import named, opened, run_one
from edgert.bench.slots import Slots
from edgert.errors import FrameLostError, RunError
from edgert.plan.structs import Plan, StagePlan
from edgert.stages.base import Source, Stage
from edgert.transport.slot import Loan, Sample

Frame = tuple[int, int]
"""(stream, sequence)"""

Recording = dict[str, list[Frame]]
"""Name of a ring -> its frames, in the order of its file."""

SKIPPED = 24
LEAST_FRAMES = 4


def record(plan: dict[str, Any], folder: str) -> Recording:
    """Record into a folder one file a ring; called in a child process.

    Args:
        plan: The plan as plain values.
        folder: Where the files go.

    Raises:
        EdgertError: A stage could not be opened, or a source gives nothing.
    """
    with ExitStack() as stages:
        recorder = Recorder(msgspec.convert(plan, Plan), stages)
        recorder.run()
        return recorder.save(Path(folder))


def file_of(folder: Path, ring: str) -> Path:
    """Return the file of a ring's frames."""
    return folder / f"{ring}.slots"


class Recorder:
    """Takes some frames of each stream through every stage that has outputs.

    Args:
        plan: The plan.
        stages: Where opened stages are closed.
    """

    def __init__(self, plan: Plan, stages: ExitStack) -> None:
        self._plan = plan
        most = max((ring.slots for ring in plan.rings), default=1)
        self._kept = max(LEAST_FRAMES, -(-most // len(plan.streams)))
        by_name = {stage.name: stage for stage in plan.stages()}
        self._stages = [by_name[name] for name in plan.ledger.stages if by_name[name].outputs]
        self._opened: dict[str, Stage] = {}
        for stage in self._stages:
            with named(stage.name):
                self._opened[stage.name] = stages.enter_context(opened(plan, stage))
        self._slots = {
            ring.name: Slots(ring.layout, self._kept * len(plan.streams)) for ring in plan.rings
        }
        self._found: dict[str, dict[Frame, int]] = {ring.name: {} for ring in plan.rings}
        self._rings = {edge.name: (ring.name, edge) for ring in plan.rings for edge in ring.edges}

    def run(self) -> None:
        """Record everything."""
        frames: list[Frame] = []
        for stage in self._stages:
            if stage.is_source:
                with named(stage.name):
                    frames += self._grab(stage)
        for frame in sorted(frames, key=by_time):
            for stage in self._stages:
                if not stage.is_source and frame[0] in stage.streams:
                    with named(stage.name):
                        self._process(stage, frame)

    def save(self, folder: Path) -> Recording:
        """Write one file a ring and return which frames are in it."""
        recording = {}
        for ring, found in self._found.items():
            frames = sorted(found, key=by_time)
            self._slots[ring].save(file_of(folder, ring), [found[frame] for frame in frames])
            recording[ring] = frames
        return recording

    def _grab(self, stage: StagePlan) -> list[Frame]:
        """Take frames from a source; of those written the last few stay."""
        source = self._opened[stage.name]
        if not isinstance(source, Source):
            raise TypeError(f"{stage.name} has no inputs and is no source")
        stream = stage.streams[0]
        sequence = 0
        for _ in range(SKIPPED + self._kept):
            try:
                header = source.grab()
                if header is None:
                    break
                loans = self._loans(stage, (stream, sequence))
                for loan in loans.values():
                    loan.set_header(header._replace(stream=stream, sequence=sequence))
                source.write(loans)
            except FrameLostError:
                continue
            for loan in loans.values():
                loan.finish()
            sequence += 1
        if not sequence:
            raise RunError(f"stage '{stage.name}'", "gave no frame to measure with")
        frames = [(stream, n) for n in range(max(0, sequence - self._kept), sequence)]
        for frame in frames:
            self._note(stage, frame)
        return frames

    def _process(self, stage: StagePlan, frame: Frame) -> None:
        """Take one frame through a stage, if all of its inputs have it."""
        inputs = {port: self._sample(edges, frame) for port, edges in stage.inputs.items()}
        whole = {port: sample for port, sample in inputs.items() if sample is not None}
        if len(whole) < len(inputs):
            return
        if run_one(self._opened[stage.name], whole, self._loans(stage, frame)):
            self._note(stage, frame)

    def _loans(self, stage: StagePlan, frame: Frame) -> dict[str, Loan]:
        index = self._index(frame)
        return {port: self._slots[ring].loans[index] for port, ring in stage.outputs.items()}

    def _note(self, stage: StagePlan, frame: Frame) -> None:
        for ring in stage.outputs.values():
            self._found[ring][frame] = self._index(frame)

    def _index(self, frame: Frame) -> int:
        stream, sequence = frame
        return stream * self._kept + sequence % self._kept

    def _sample(self, edges: tuple[str, ...], frame: Frame) -> Sample | None:
        for name in edges:
            ring, edge = self._rings[name]
            if frame[0] in edge.streams and frame in self._found[ring]:
                sample = self._slots[ring].samples[self._found[ring][frame]]
                sample.refresh()
                return sample
        return None


def by_time(frame: Frame) -> tuple[int, int]:
    """Sort the frames of several streams as they come: in turn."""
    stream, sequence = frame
    return sequence, stream

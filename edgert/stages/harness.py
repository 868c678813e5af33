"""Runs one stage without any process: for tests, for benchmarks of a stage alone, for authors."""

from __future__ import annotations

import mmap
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from edgert.stages.base import (
    AsyncStage,
    Inputs,
    Outputs,
    PlanContext,
    Ports,
    Source,
    Stage,
    StageContext,
)
from edgert.stages.refusals import PATIENCE_S, Written, kept_input, refuse_kept_views
from edgert.tensor import FrameHeader, PortSpec
from edgert.transport.address import Array, address_of_map
from edgert.transport.holders import holders
from edgert.transport.slot import Loan, Sample, SlotLayout


class PrivateSlot:
    """One slot of plain memory, with a loan and a sample over it."""

    def __init__(self, port: PortSpec) -> None:
        layout = SlotLayout.of(port)
        memory = mmap.mmap(-1, layout.slot_bytes)
        address = address_of_map(memory)
        self.loan = Loan(memory, layout, 0, address)
        self.loan.clear()
        self.sample = Sample(memory, layout, 0, address)

    def fill(self, tensors: Mapping[str, Array], header: FrameHeader) -> Sample:
        """Write a frame and return it as received."""
        self.loan.set_header(header)
        for name, array in tensors.items():
            self.loan.tensor(name, array.shape)[...] = array
        return self.received()

    def received(self) -> Sample:
        """Return what was written to the loan as a sample."""
        self.loan.finish()
        self.sample.refresh()
        return self.sample


class StageRun:
    """An opened stage with one slot for each of its ports."""

    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        context = stage.context
        self._written = Written(context, "Write a tensor in each frame, of 0 things too")
        self.inputs = {name: PrivateSlot(port) for name, port in context.inputs.items()}
        self.outputs = {name: PrivateSlot(port) for name, port in context.outputs.items()}

    def feed(
        self,
        frames: Mapping[str, Mapping[str, Array]],
        header: FrameHeader | None = None,
    ) -> dict[str, Sample]:
        """Run one frame through a stage: input port -> tensors in, output port -> sample out.

        Raises:
            StageError: It kept what ends with the frame, or wrote an output badly, as in a run.
            Exception: Whatever the stage raised.
        """
        header = header or FrameHeader()
        samples = {name: self.inputs[name].fill(frame, header) for name, frame in frames.items()}
        loans = {name: slot.loan for name, slot in self.outputs.items()}
        for loan in loans.values():
            loan.inherit(next(iter(samples.values())))
        held = holders(samples)
        self._run(samples, loans)
        held_after = holders(samples)
        context = self.stage.context
        patience_s = PATIENCE_S if isinstance(self.stage, AsyncStage) else 0.0
        refuse_kept_views(context.place, samples, loans, patience_s)
        if held_after != held:
            raise kept_input(context.place)
        self._written.require(loans, header.sequence)
        return {name: slot.received() for name, slot in self.outputs.items()}

    def grab(self) -> dict[str, Sample] | None:
        """Fetch one frame from a source; None at its end."""
        source = self.stage
        if not isinstance(source, Source):
            raise TypeError(f"{type(source).__name__} is not a source")
        header = source.grab()
        if header is None:
            return None
        for slot in self.outputs.values():
            slot.loan.set_header(header)
        source.write({name: slot.loan for name, slot in self.outputs.items()})
        return {name: slot.received() for name, slot in self.outputs.items()}

    def _run(self, inputs: Inputs, outputs: Outputs) -> None:
        if not isinstance(self.stage, AsyncStage):
            self.stage.process(inputs, outputs)
            return
        ended = threading.Event()
        errors: list[BaseException | None] = []

        def done(error: BaseException | None) -> None:
            errors.append(error)
            ended.set()

        self.stage.start(inputs, outputs, done)
        if not ended.wait(60):
            raise TimeoutError("the stage did not finish its frame within 60 s")
        if errors[0] is not None:
            raise errors[0]


@contextmanager
def opened(
    kind: type[Stage],
    settings: Mapping[str, Any],
    inputs: Ports,
    context: PlanContext,
    threads: int = 1,
    restarts: int = 0,
) -> Iterator[StageRun]:
    """Plan and open a stage as a worker would, and close it at the end.

    Args:
        kind: The class of the stage.
        settings: Its options, as in the file.
        inputs: What arrives on each input port.
        context: What it may ask while it is planned.
        threads: Threads its libraries may use.
        restarts: How often its worker has been restarted.
    """
    from edgert.pipeline.adapter import read_as  # trials of a worker need the rest of this module

    options = read_as(kind.options, dict(settings))
    outputs = kind.plan(options, inputs, context)
    stage = kind(
        options,
        StageContext(
            context.name,
            context.place,
            inputs,
            outputs,
            threads,
            streams=context.streams or ("camera",),
            folder=context.folder,
            restarts=restarts,
        ),
    )
    stage.open()
    try:
        yield StageRun(stage)
    finally:
        stage.close()

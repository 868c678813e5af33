"""Opens one stage of a plan as its worker would, and runs frames through it without a process."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from queue import SimpleQueue

from edgert.errors import EdgertError, FrameFiltered, FrameLostError, StageError
from edgert.plan.opening import make_stage
from edgert.plan.structs import Plan, StagePlan
from edgert.stages.base import AsyncStage, Inputs, Outputs, Stage


@contextmanager
def opened(plan: Plan, stage_plan: StagePlan) -> Iterator[Stage]:
    """Open a stage, and at the end let its streams end and close it."""
    stage = make_stage(stage_plan, plan.streams, plan.folder)
    stage.open()
    try:
        yield stage
        for stream in stage_plan.streams if stage_plan.inputs else ():
            stage.end_stream(stream)
    finally:
        stage.close()


@contextmanager
def named(stage: str) -> Iterator[None]:
    """Make whatever a stage raises an error with its name.

    Raises:
        StageError: The stage raised what is no error of ours.
    """
    try:
        yield
    except EdgertError:
        raise
    except Exception as error:
        fault = f"raised {type(error).__name__}: {error}"
        raise StageError(f"stage '{stage}'", fault) from error


def run_one(stage: Stage, inputs: Inputs, outputs: Outputs) -> bool:
    """Run one frame to its end; whether it goes on (a stage may filter or lose it)."""
    first = next(iter(inputs.values()))
    for loan in outputs.values():
        loan.inherit(first)
    try:
        _run(stage, inputs, outputs)
    except (FrameFiltered, FrameLostError):
        return False
    for loan in outputs.values():
        loan.finish()
    return True


def _run(stage: Stage, inputs: Inputs, outputs: Outputs) -> None:
    if not isinstance(stage, AsyncStage):
        stage.process(inputs, outputs)
        return
    ended: SimpleQueue[BaseException | None] = SimpleQueue()
    stage.start(inputs, outputs, ended.put)
    error = ended.get()
    if error is not None:
        raise error

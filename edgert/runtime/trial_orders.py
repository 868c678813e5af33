"""What of a new plan has to show something before it takes over (``swap:``)."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from edgert.errors import Fault, UserError
from edgert.plan.structs import Plan, StagePlan, TrialOrder, WorkerPlan
from edgert.runtime.agreement import port_of_detections
from edgert.runtime.succession import can_be_opened_twice
from edgert.stages.registry import Registry
from edgert.stages.swap_options import SwapOptions


def bounds_of(stage: StagePlan) -> SwapOptions | None:
    """Return what an heir of a stage has to keep to; None where it is not tried."""
    kind = Registry().stage_class(stage.kind)
    bounds = getattr(kind.options.model_validate(stage.settings), "swap", None)
    return bounds if isinstance(bounds, SwapOptions) else None


def trials_of(worker: WorkerPlan, old: Plan, new: Plan) -> tuple[TrialOrder, ...]:
    """Return the stages of a worker of the new plan that are tried: those that differ.

    Whatever of a stage differs may change what it gives, or how fast: its model, the device, ...
    """
    before = {stage.name: stage for stage in old.stages()}
    orders = []
    for stage in worker.stages:
        if bounds_of(stage) is None or _is_the_same(before[stage.name], stage):
            continue
        readers = [_reader_of(plan, stage.name) for plan in (old, new)]
        orders.append(TrialOrder(stage.name, tuple(each for each in readers if each is not None)))
    return tuple(orders)


def require_trials_can_be(workers: Iterable[WorkerPlan], old: Plan, new: Plan) -> None:
    """Refuse to try what cannot be open beside what runs.

    Raises:
        UserError: A stage with ``swap`` shares its worker with one that cannot be open twice.
    """
    faults = [
        Fault(f"stage '{trial.stage}', swap", _NOT_BESIDE, _OWN_WORKER)
        for worker in workers
        if not can_be_opened_twice(worker)
        for trial in trials_of(worker, old, new)
    ]
    if faults:
        error = UserError(faults[0].place, faults[0].fault, faults[0].mend)
        error.faults = tuple(faults)
        raise error


_NOT_BESIDE = "its worker also runs stages that cannot be open twice, so that it cannot be tried"
_OWN_WORKER = "Give it a worker of its own, or remove 'swap'; either needs another start"


def _is_the_same(before: StagePlan, after: StagePlan) -> bool:
    """Whether nothing differs but what is asked of heirs."""
    plain = [
        msgspec.structs.replace(
            stage, settings={key: value for key, value in stage.settings.items() if key != "swap"}
        )
        for stage in (before, after)
    ]
    return plain[0] == plain[1]


def _reader_of(plan: Plan, stage: str) -> StagePlan | None:
    """Return who makes detections of a stage's outputs, frame by frame and of them alone."""
    names = {edge.reader for ring in plan.rings if ring.writer == stage for edge in ring.edges}
    kinds = Registry()
    return next(
        (
            each
            for each in plan.stages()
            if each.name in names
            and len(each.inputs) == 1
            and port_of_detections(each)
            and kinds.stage_class(each.kind).is_stateless
        ),
        None,
    )

"""What of a new plan has to show something before it takes over (``swap:``)."""

from __future__ import annotations

import msgspec

from edgert.options import restore
from edgert.plan.structs import Plan, StagePlan, TrialOrder, WorkerPlan
from edgert.plan.swaps import bounds_of
from edgert.runtime.trials.agreement import port_of_detections
from edgert.stages.registry import Registry
from edgert.stages.swap_options import SwapOptions


def bounds_of_stage(stage: StagePlan) -> SwapOptions | None:
    """Return what an heir of a planned stage has to keep to; None where it is not tried."""
    return bounds_of(restore(Registry().stage_class(stage.kind).options, stage.settings))


def trials_of(worker: WorkerPlan, old: Plan, new: Plan) -> tuple[TrialOrder, ...]:
    """Return the stages of a worker of the new plan that are tried: those that differ.

    Whatever of a stage differs may change what it gives, or how fast: its model, the device, ...
    """
    before = {stage.name: stage for stage in old.stages()}
    orders = []
    for stage in worker.stages:
        if bounds_of_stage(stage) is None or _is_the_same(before[stage.name], stage):
            continue
        readers = [_reader_of(plan, stage.name) for plan in (old, new)]
        orders.append(TrialOrder(stage.name, tuple(each for each in readers if each is not None)))
    return tuple(orders)


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

"""From a planned stage to an object of its class, the same for a worker and for a benchmark."""

from __future__ import annotations

import logging

from edgert.plan.structs import StagePlan
from edgert.stages.base import Stage, StageContext
from edgert.stages.registry import Registry


def make_stage(plan: StagePlan, streams: tuple[str, ...], folder: str, restarts: int = 0) -> Stage:
    """Return a stage that knows its surroundings and has not been opened yet.

    Args:
        plan: The stage.
        streams: Name of each stream by its number.
        folder: Folder that relative paths start from.
        restarts: How often its worker has been restarted in this run.
    """
    kind = Registry().stage_class(plan.kind)
    context = StageContext(
        name=plan.name,
        place=f"stage '{plan.name}'",
        inputs=plan.input_ports,
        outputs=plan.output_ports,
        threads=plan.threads,
        streams=streams,
        folder=folder,
        restarts=restarts,
        log=logging.getLogger(f"edgert.{plan.name}"),
    )
    return kind(kind.options.model_validate(plan.settings), context)

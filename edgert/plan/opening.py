"""From a planned stage to an object of its class, the same for a worker and for a benchmark."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping
from dataclasses import dataclass, field

from edgert.options import restore
from edgert.plan.structs import StagePlan
from edgert.stages.base import OnAttempt, Stage, StageContext, nobody_counts
from edgert.stages.raised import named
from edgert.stages.registry import Registry

OPEN_S = "open_s"  # a stage's report: how long it took to open


@dataclass(frozen=True, slots=True)
class Before:
    """What has happened to a stage in earlier processes; see ``StageContext``."""

    restarts: int = 0
    refused: Mapping[str, str] = field(default_factory=dict)
    lost: Mapping[str, str] = field(default_factory=dict)
    on_attempt: OnAttempt = nobody_counts


def make_stage(
    plan: StagePlan,
    streams: tuple[str, ...],
    folder: str,
    before: Before = Before(),
    results_fd: int = 1,
) -> Stage:
    """Return a stage that knows its surroundings and has not been opened yet.

    Args:
        plan: The stage.
        streams: Name of each stream by its number.
        folder: Folder that relative paths start from.
        before: What has happened to it in this run.
        results_fd: Where results go that are for standard output.
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
        restarts=before.restarts,
        refused=before.refused,
        lost=before.lost,
        on_attempt=before.on_attempt,
        results_fd=results_fd,
        log=logging.getLogger(f"edgert.{plan.name}"),
    )
    with named(kind, context.place, "when it was made"):
        return kind(restore(kind.options, plan.settings), context)


def open_stage(stage: Stage) -> None:
    """Open a stage, and note in its report how long that took."""
    begun_s = time.monotonic()
    with named(type(stage), stage.context.place, "in open()"):
        stage.open()
    took_s = time.monotonic() - begun_s
    stage.context.report[OPEN_S] = round(took_s, 3)
    stage.context.log.debug("opened in %.3f s", took_s, extra={"open_ms": round(took_s * 1e3)})

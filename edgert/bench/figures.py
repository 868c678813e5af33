"""What the measurements come to: pure functions of the plan, the stages alone and the whole."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from edgert.bench.meter import Alone
from edgert.bench.whole import Whole
from edgert.plan.structs import Plan, StagePlan


class PipelineReport(msgspec.Struct, frozen=True, kw_only=True):
    """What was measured, ``edgert.bench.pipeline/1``.

    Attributes:
        pipeline: Name of the pipeline.
        fps: Frames/s of the whole, as its summary says (the best leaf's).
        ideal_fps: Cores over the CPU seconds that a frame costs in the stages alone.
        efficiency: ``fps`` over ``ideal_fps``.
        cpu_ms_per_frame: CPU of each stage alone, for a frame that passes it.
        frames_per_result: How many frames pass each stage for one that reaches the leaf.
        alone_fps: Frames/s of each stage alone.
        whole_cpu_ms_per_frame: CPU of each worker in the whole run, for a frame at the leaf.
        cores: How many cores' worth of time the plan may use.
        frames: Frames of the whole run.
        copied_bytes: Bytes that stages of the whole run copied beside their first writes.
    """

    schema: str = "edgert.bench.pipeline/1"
    pipeline: str
    fps: float
    ideal_fps: float
    efficiency: float
    cpu_ms_per_frame: dict[str, float]
    frames_per_result: dict[str, float]
    alone_fps: dict[str, float]
    whole_cpu_ms_per_frame: dict[str, float]
    cores: float
    frames: dict[str, int]
    copied_bytes: int


def report(
    plan: Plan, alone: Mapping[str, Alone], whole: Whole, quota: float | None
) -> PipelineReport:
    """Put everything together.

    Args:
        plan: The plan.
        alone: What each stage came to.
        whole: What the whole came to.
        quota: How many cores' worth of time the control group allows; None where it does not say.
    """
    cores = usable_cores(plan, quota)
    results = max(whole.stages[stage.name].frames for stage in plan.stages() if stage.leaf >= 0)
    passed = {stage.name: frames_through(stage, whole) / max(1, results) for stage in plan.stages()}
    cost_s = sum(alone[name].cpu_ms * passed[name] for name in passed) / 1e3
    ideal_fps = cores / cost_s
    workers = {figures.worker: figures.cpu_s for figures in whole.stages.values()}
    return PipelineReport(
        pipeline=plan.name,
        fps=whole.fps,
        ideal_fps=round(ideal_fps, 2),
        efficiency=round(whole.fps / ideal_fps, 4),
        cpu_ms_per_frame={name: round(alone[name].cpu_ms, 4) for name in passed},
        frames_per_result={name: round(share, 4) for name, share in passed.items()},
        alone_fps={name: round(alone[name].fps, 1) for name in passed},
        whole_cpu_ms_per_frame={
            name: round(cpu_s * 1e3 / max(1, results), 4) for name, cpu_s in workers.items()
        },
        cores=round(cores, 2),
        frames=whole.frames,
        copied_bytes=sum(figures.copied_bytes for figures in whole.stages.values()),
    )


def usable_cores(plan: Plan, quota: float | None) -> float:
    """Return how many cores' worth of time all workers together may use."""
    count = float(len({core for worker in plan.workers for core in worker.cores}))
    return count if quota is None else min(count, quota)


def frames_through(stage: StagePlan, whole: Whole) -> int:
    """Return how many frames a stage took: those it filtered cost CPU as well."""
    if stage.is_source:
        return whole.stages[stage.name].frames
    first_port = next(iter(stage.inputs.values()))
    return sum(whole.links[edge]["processed"] for edge in first_port)

"""What the measurements come to: pure functions of the plan, the stages alone and the whole."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from edgert.bench.meter import Alone
from edgert.bench.whole import Whole
from edgert.plan.structs import Plan, StagePlan


class PipelineReport(msgspec.Struct, frozen=True, kw_only=True):
    """What was measured, ``edgert.bench.pipeline/1``: what is added later leaves that number.

    Attributes:
        pipeline: Name of the pipeline.
        fps: Frames/s of the whole, as its summary says (the best leaf's).
        ideal_fps: Cores over the CPU seconds that a frame costs in the stages alone, in a loop.
        efficiency: ``fps`` over ``ideal_fps``.
        ideal_fps_at_pace: The same with the workers alone, each at the pace of the whole.
        efficiency_at_pace: ``fps`` over that.
        bottleneck: The stage whose worker has no pauses at its pace; empty where all have.
        cpu_ms_per_frame: CPU of each stage alone in a loop, for a frame that passes it.
        frames_per_result: How many frames pass each stage for one that reaches the leaf.
        alone_fps: Frames/s of each stage alone.
        loop_cpu_ms_per_frame: CPU of each worker's stages in a loop, for a frame at the leaf.
        paced_cpu_ms_per_frame: The same at the pace of the whole.
        whole_cpu_ms_per_frame: The same in the whole run.
        cores: How many cores' worth of time the plan may use.
        frames: Frames of the whole run.
        copied_bytes: Bytes that stages of the whole run copied beside their first writes.
    """

    schema: str = "edgert.bench.pipeline/1"
    pipeline: str
    fps: float
    ideal_fps: float
    efficiency: float
    ideal_fps_at_pace: float
    efficiency_at_pace: float
    bottleneck: str
    cpu_ms_per_frame: dict[str, float]
    frames_per_result: dict[str, float]
    alone_fps: dict[str, float]
    loop_cpu_ms_per_frame: dict[str, float]
    paced_cpu_ms_per_frame: dict[str, float]
    whole_cpu_ms_per_frame: dict[str, float]
    cores: float
    frames: dict[str, int]
    copied_bytes: int


class Turns(msgspec.Struct, frozen=True):
    """How often a worker had something to do in the whole run.

    Attributes:
        worker: Its name.
        interval_s: From one turn to the next; 0 where one follows the other without a pause.
        per_result: Turns for one frame that reached the leaf.
        shares: Each stage -> frames that passed it in a turn: 1 for the stage that most passed.
    """

    worker: str
    interval_s: float
    per_result: float
    shares: dict[str, float]


def report(
    plan: Plan,
    alone: Mapping[str, Alone],
    whole: Whole,
    paced: Mapping[str, Alone],
    quota: float | None,
) -> PipelineReport:
    """Put everything together.

    Args:
        plan: The plan.
        alone: What each stage came to in a loop.
        whole: What the whole came to.
        paced: What each worker came to at its pace.
        quota: How many cores' worth of time the control group allows; None where it does not say.
    """
    cores = usable_cores(plan, quota)
    passed = frames_per_result(plan, whole)
    turns = turns_of(plan, whole)
    loop_ms = {
        each.worker: sum(alone[name].cpu_ms * passed[name] for name in each.shares)
        for each in turns
    }
    paced_ms = {each.worker: paced[each.worker].cpu_ms * each.per_result for each in turns}
    cpu_s = {figures.worker: figures.cpu_s for figures in whole.stages.values()}
    results = _results(plan, whole)
    ideal_fps = cores / sum(loop_ms.values()) * 1e3
    ideal_fps_at_pace = cores / sum(paced_ms.values()) * 1e3
    return PipelineReport(
        pipeline=plan.name,
        fps=whole.fps,
        ideal_fps=round(ideal_fps, 2),
        efficiency=round(whole.fps / ideal_fps, 4),
        ideal_fps_at_pace=round(ideal_fps_at_pace, 2),
        efficiency_at_pace=round(whole.fps / ideal_fps_at_pace, 4),
        bottleneck=whole.bottleneck.get("stage", ""),
        cpu_ms_per_frame={name: round(alone[name].cpu_ms, 4) for name in passed},
        frames_per_result={name: round(share, 4) for name, share in passed.items()},
        alone_fps={name: round(alone[name].fps, 1) for name in passed},
        loop_cpu_ms_per_frame={name: round(ms, 4) for name, ms in loop_ms.items()},
        paced_cpu_ms_per_frame={name: round(ms, 4) for name, ms in paced_ms.items()},
        whole_cpu_ms_per_frame={name: round(s * 1e3 / results, 4) for name, s in cpu_s.items()},
        cores=round(cores, 2),
        frames=whole.frames,
        copied_bytes=sum(figures.copied_bytes for figures in whole.stages.values()),
    )


def frames_per_result(plan: Plan, whole: Whole) -> dict[str, float]:
    """Return how many frames passed each stage for one that reached the leaf."""
    results = _results(plan, whole)
    return {stage.name: frames_through(stage, whole) / results for stage in plan.stages()}


def turns_of(plan: Plan, whole: Whole) -> list[Turns]:
    """Return how often each worker had something to do, by the frames of the whole run.

    Frames wait for the bottleneck, not the bottleneck for frames: its worker has no pauses.
    """
    passed = frames_per_result(plan, whole)
    found = []
    for worker in plan.workers:
        per_result = max(passed[name] for name in worker.stage_names)
        fps = whole.fps * per_result
        has_pauses = fps and whole.bottleneck.get("stage") not in worker.stage_names
        shares = {name: passed[name] / (per_result or 1) for name in worker.stage_names}
        interval_s = 1 / fps if has_pauses else 0.0
        found.append(Turns(worker.name, interval_s, per_result, shares))
    return found


def _results(plan: Plan, whole: Whole) -> int:
    return max(1, *(whole.stages[stage.name].frames for stage in plan.stages() if stage.leaf >= 0))


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

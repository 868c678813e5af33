"""The summary of a run, ``edgert.summary/1``: what happened to every frame, and where time went."""

from __future__ import annotations

import math
from typing import Any

import msgspec

from edgert.plan.opening import OPEN_S
from edgert.plan.structs import Plan, StagePlan
from edgert.runtime import crew
from edgert.runtime.accounts import Counts, total_counts
from edgert.runtime.crew import Member
from edgert.runtime.sources import SourceState, live_sources
from edgert.transport.histogram import percentile_ms, total_ms
from edgert.transport.ledger import Ledger, StageBlock

_BUSY_SHARE = 0.85  # of what it could do: from here on a stage or the CPU is what limits the run


class Percentiles(msgspec.Struct, frozen=True, omit_defaults=True):
    """Durations in milliseconds; null where nothing was measured."""

    p50: float | None
    p95: float | None
    p99: float | None
    max: float | None = None


class BatchSummary(msgspec.Struct, frozen=True):
    """Batches of a stage; ``wait_ms`` is how long frames waited for others, or for a request.

    ``padding`` is the share of places that no frame filled.
    """

    batches: int
    mean_size: float
    padding: float
    wait_ms: Percentiles


class StageSummary(msgspec.Struct, frozen=True):
    """One stage; ``cpu_s`` and ``restarts`` are its worker's, which stages of one worker share.

    ``open_s`` is how long its last process took to open it, with a model to load, compile and warm
    it up; ``variants`` is what each further size that its model was compiled for cost.
    ``away`` is why its worker was away at the end, while others of the stage did its work.
    """

    frames: int
    lost: int
    service_ms: Percentiles
    wait_in_ms: Percentiles
    wait_out_ms: Percentiles
    cpu_s: float
    copied_bytes: int
    cores: list[int]
    pid: int
    worker: str
    restarts: int
    open_s: float
    batch: BatchSummary | None = None
    variants: dict[str, dict[str, float]] = {}
    away: str | msgspec.UnsetType = msgspec.UNSET


class Bottleneck(msgspec.Struct, frozen=True):
    """What limits the run, and how that is known."""

    stage: str
    why: str


class Summary(msgspec.Struct, frozen=True):
    """A whole run; ``throttled`` is empty where the cores were not held back."""

    pipeline: str
    duration_s: float
    frames: Counts
    streams: dict[str, Counts]
    fps: float
    latency_ms: Percentiles
    stages: dict[str, StageSummary]
    links: dict[str, Counts]
    devices: dict[str, dict[str, Any]]
    sources: dict[str, SourceState]
    memory: dict[str, Any]
    bottleneck: Bottleneck
    error: str = ""
    throttled: dict[str, Any] = {}
    schema: str = "edgert.summary/1"


def summarise(
    plan: Plan,
    ledger: Ledger,
    members: dict[str, Member],
    duration_s: float,
    pss: dict[str, float],
    error: str,
    throttled: dict[str, Any],
) -> Summary:
    """Return the summary of a run whose accounts are closed."""
    stages = {
        stage.name: _stage(ledger.stage(stage.name), member, stage)
        for member in members.values()
        for stage in member.plan.stages
    }
    devices = {
        stage: report["device"]
        for member in members.values()
        for stage, report in member.reports.items()
        if "device" in report
    }
    return Summary(
        pipeline=plan.name,
        duration_s=round(duration_s, 3),
        frames=total_counts(ledger, plan.streams),
        streams={name: total_counts(ledger, (name,)) for name in plan.streams},
        fps=round(rate(plan, ledger), 2),
        latency_ms=_latency(plan, ledger),
        stages=stages,
        links={
            edge.name: ledger.edge(edge.name).counters()
            for ring in plan.rings
            for edge in ring.edges
        },
        devices=devices,
        sources=live_sources(ledger, plan.streams),
        memory=_memory(plan, pss),
        bottleneck=_bottleneck(plan, ledger, stages, duration_s),
        error=error,
        throttled=throttled,
    )


def _memory(plan: Plan, pss: dict[str, float]) -> dict[str, Any]:
    """Return what memory took; a run that ended before it was measured has no sum, not 0."""
    return {
        "pss_mb": round(sum(pss.values()), 1) if pss else None,
        "pss_mb_by_process": pss,
        "shared_mb": round(plan.shared_bytes / 1e6, 1),
    }


def rate(plan: Plan, ledger: Ledger) -> float:
    """Return frames/s: (results - 1) / (time of the last - time of the first), leaves' best."""
    best = 0.0
    for stage in plan.stages():
        if stage.leaf < 0:
            continue
        words = ledger.stage(stage.name).words
        span_ns = words[StageBlock.LAST] - words[StageBlock.FIRST]
        if span_ns > 0:
            best = max(best, (words[StageBlock.FRAMES] - 1) * 1e9 / span_ns)
    return best


def percentiles(counts: list[int], maximum_ns: int | None = None) -> Percentiles:
    """Return percentiles of a histogram of the ledger, none above the maximum."""
    maximum = None if maximum_ns is None else round(maximum_ns / 1e6, 3)
    highest = math.inf if maximum is None else maximum  # a bucket's middle may lie above it
    shares = [percentile_ms(counts, share) for share in (0.5, 0.95, 0.99)]
    p50, p95, p99 = (None if one is None else min(round(one, 3), highest) for one in shares)
    return Percentiles(p50, p95, p99, maximum)


def _stage(block: StageBlock, member: Member, stage: StagePlan) -> StageSummary:
    words, report = block.words, member.reports.get(stage.name, {})
    service, wait_in, wait_out = (
        percentiles(block.histogram(name)) for name in ("service", "wait_in", "wait_out")
    )
    return StageSummary(
        frames=words[StageBlock.FRAMES],
        lost=words[StageBlock.LOST],
        service_ms=service,
        wait_in_ms=wait_in,
        wait_out_ms=wait_out,
        cpu_s=round(words[StageBlock.CPU] / 1e9, 3),
        copied_bytes=words[StageBlock.COPIED],
        cores=list(member.plan.cores),
        pid=member.pid,
        worker=member.plan.name,
        restarts=member.restarts,
        open_s=report.get(OPEN_S, 0.0),
        batch=_batches(block),
        variants=report.get("variants", {}),
        away=member.why_down if member.state == crew.AWAY else msgspec.UNSET,
    )


def _batches(block: StageBlock) -> BatchSummary | None:
    """Return what is known of a stage's batches; None where it made none."""
    words = block.words
    batches, frames = words[StageBlock.BATCHES], words[StageBlock.BATCH_FRAMES]
    if not batches:
        return None
    padding = words[StageBlock.BATCH_PADDING]
    return BatchSummary(
        batches=batches,
        mean_size=round(frames / batches, 2),
        padding=round(padding / (frames + padding), 3),
        wait_ms=percentiles(block.histogram("wait_batch")),
    )


def _latency(plan: Plan, ledger: Ledger) -> Percentiles:
    """Over all leaves: from the moment a source had the frame to the end of the leaf."""
    blocks = [ledger.stage(stage.name) for stage in plan.stages() if stage.leaf >= 0]
    counts = [sum(column) for column in zip(*(b.histogram("latency") for b in blocks), strict=True)]
    maximum = max((block.words[StageBlock.LATENCY_MAX] for block in blocks), default=0)
    return percentiles(counts, maximum if any(counts) else None)


def _bottleneck(
    plan: Plan, ledger: Ledger, stages: dict[str, StageSummary], duration_s: float
) -> Bottleneck:
    """The cores if they were full, else the stage that was busy most of the time."""
    if duration_s <= 0:
        return Bottleneck("", "the run has not begun")
    if not any(summary.frames for summary in stages.values()):
        return Bottleneck("", "no frame came")
    cpu_s = sum({summary.worker: summary.cpu_s for summary in stages.values()}.values())
    cores = len({core for worker in plan.workers for core in worker.cores})
    by_worker = sorted(stages.items(), key=lambda item: item[1].cpu_s, reverse=True)
    if cpu_s >= _BUSY_SHARE * cores * duration_s:
        name, summary = by_worker[0]
        why = (
            f"the CPU is full: {cpu_s / duration_s:.2f} of {cores} cores, "
            f"{summary.cpu_s / duration_s:.2f} of them in worker '{summary.worker}'"
        )
        return Bottleneck(name, why)
    busy = {
        name: min(1.0, total_ms(ledger.stage(name).histogram("service")) / 1e3 / duration_s)
        for name in stages
    }
    name = max(busy, key=lambda stage: busy[stage])
    if busy[name] < _BUSY_SHARE:
        why = f"busy {busy[name]:.0%} of the time: neither it nor the cores limit the run"
        return Bottleneck(name, why)
    return Bottleneck(name, f"busy {busy[name]:.0%} of the time; the cores are not full")

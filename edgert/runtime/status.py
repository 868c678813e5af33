"""Where a run stands, ``edgert.status/1``: what ``edgert ctl NAME status`` shows."""

from __future__ import annotations

import os
import time
from collections import deque
from typing import Any

import msgspec

from edgert.runtime import crew
from edgert.runtime.accounts import Counts, stream_counts, total_counts
from edgert.runtime.crew import Member
from edgert.runtime.sources import live_sources
from edgert.runtime.summary import Percentiles, percentiles
from edgert.runtime.supervisor import Supervisor
from edgert.runtime.trials.trial import SwapStatus
from edgert.transport.ledger import EdgeBlock, Ledger, StageBlock

_SAMPLE_EVERY_S = 1.0
_SAMPLES = 6


class StageStatus(msgspec.Struct, frozen=True):
    """One stage; ``pid``, ``state``, ``restarts`` and ``why_down`` are its worker's."""

    pid: int
    state: str
    restarts: int
    device: str | None
    worker: str
    frames: int
    filtered: int
    lost: int
    service_ms: Percentiles
    why_down: str = ""


class RunStatus(msgspec.Struct, frozen=True):
    """A whole run; ``fps`` is of the last seconds."""

    pipeline: str
    state: str
    pid: int
    uptime_s: float
    frames: Counts
    fps: float
    stages: dict[str, StageStatus]
    links: dict[str, dict[str, int]]
    sources: dict[str, dict[str, Any]]
    waits: list[str]
    swaps: dict[str, SwapStatus]
    schema: str = "edgert.status/1"


class Pace:
    """Frames/s of the last seconds, from counts that are looked at now and then."""

    def __init__(self) -> None:
        self._samples: deque[tuple[float, int]] = deque(maxlen=_SAMPLES)

    def look(self, now_s: float, processed: int) -> None:
        """Note a count, unless one was noted a moment ago."""
        if not self._samples or now_s - self._samples[-1][0] >= _SAMPLE_EVERY_S:
            self._samples.append((now_s, processed))

    def fps(self, now_s: float, processed: int) -> float:
        """Return the frames/s since the oldest count that is kept."""
        if not self._samples:
            return 0.0
        since_s, before = self._samples[0]
        return (processed - before) / max(now_s - since_s, 1e-3)


def status_of(supervisor: Supervisor, pace: Pace, waits: list[str]) -> RunStatus:
    """Return where a run stands.

    Args:
        supervisor: Of the run.
        pace: What was seen of its results.
        waits: Who waits for whom, in words.
    """
    plan, ledger, members = supervisor.plan, supervisor.ledger, supervisor.members
    now_s, since_s = time.monotonic(), supervisor.started_s
    frames = total_counts(ledger, plan.streams)
    edges = [edge.name for ring in plan.rings for edge in ring.edges]
    return RunStatus(
        pipeline=plan.name,
        state=supervisor.phase,
        pid=os.getpid(),
        uptime_s=round(now_s - since_s, 3) if since_s else 0.0,
        frames=frames,
        fps=round(pace.fps(now_s, frames["processed"]), 2),
        stages={
            stage.name: _stage(ledger.stage(stage.name), member, stage.name)
            for member in members.values()
            for stage in member.plan.stages
        },
        links={name: _link(ledger.edge(name)) for name in edges},
        sources={name: _source(ledger, members, name) for name in plan.streams},
        waits=waits,
        swaps={name: trial.status() for name, trial in supervisor.succession.trials.items()},
    )


def _stage(block: StageBlock, member: Member, name: str) -> StageStatus:
    words = block.words
    return StageStatus(
        pid=member.pid,
        state=member.state,
        restarts=member.restarts,
        device=member.reports.get(name, {}).get("device", {}).get("actual"),
        worker=member.plan.name,
        frames=words[StageBlock.FRAMES],
        filtered=words[StageBlock.FILTERED],
        lost=words[StageBlock.LOST],
        service_ms=percentiles(block.histogram("service")),
        why_down=member.why_down,
    )


def _link(block: EdgeBlock) -> dict[str, int]:
    return {**block.counters(), "waiting": block.outstanding()}


def _source(ledger: Ledger, members: dict[str, Member], name: str) -> dict[str, Any]:
    """Return state and counts of a stream; ``ended`` where nothing will come any more."""
    state = next(m.state for m in members.values() if name in m.plan.stage_names)
    live = live_sources(ledger, (name,)).get(name)
    known = msgspec.to_builtins(live) if live is not None and state == crew.READY else {}
    return {
        "state": "ended" if state == crew.FINISHED else state,
        **known,
        **stream_counts(ledger, name),
        "in_flight": len(ledger.stream(name).in_flight()),
    }

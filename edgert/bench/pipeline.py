"""``bench pipeline``: each stage alone, then the whole; how near the whole comes to the ideal.

    ideal frames/s = cores / CPU seconds a frame costs in the stages alone
    efficiency     = frames/s of the whole / ideal = CPU that had to be spent / CPU there was

What makes it honest:

- The ideal is what these very stages could do on these cores if tokens, polls, wake-ups and waiting
  cost nothing: the whole does everything the stages alone do, and the rest besides.
- Alone, a stage has a fresh process without any other's libraries, its worker's cores and threads,
  real frames of this input (``record.py``), as many slots as the plan gives it, no more, so that it
  profits from the caches as in the run and not less, and never waits (``alone.py``). Its CPU is the
  process's, every thread of its libraries counted, from the end of a warm-up on; opening is not in
  it, as it is not in the frames/s of the whole (first to last result).
- Half of the time a stage is measured before the whole and half of it after: the speed of a machine
  that others share, or that becomes warm, wanders by more than what is to be seen here.
- Stages are weighed by the frames that passed them in the whole run: of two streams each camera
  has half, behind a filter there are fewer.
- The whole is ``edgert run`` of the same file with the same options. Sinks write as always, but to
  a folder that is removed.
- A stage alone has the other cores idle beside it, in the whole they are busy: where cores share
  caches or their clock, that makes the ideal higher and the efficiency lower, never better.

A stage in a loop is faster than the same stage that sleeps between frames, since whatever runs in
between, or nothing, leaves caches and branch predictors cold. That is the price of the pace, and no
runtime can spare it; so each worker is measured once more, at the pace of the whole:

    efficiency at pace = frames/s of the whole / (cores / CPU seconds of the workers at their pace)

Between ``efficiency`` and this one lies the price of the pace; between this one and 1 lies what
tokens, polls, wake-ups and waiting cost, and caches that several cores share. Frames come evenly
there, in the whole now and then several in a row: it may be a little more than 1. A worker's stages
run one after the other, with one pause, as they do in the run. The bottleneck has no pauses in the
run and none here.

Both figures of a pipeline that waits for an accelerator or a live source are low and rightly so:
the CPU is not what limits it. ``alone_fps`` shows a stage that is too slow on its own.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from edgert import isolate
from edgert.bench.alone import Bench
from edgert.bench.figures import PipelineReport, report, turns_of
from edgert.bench.meter import Alone
from edgert.bench.record import Recording
from edgert.bench.whole import Whole, run_whole
from edgert.device import cgroup
from edgert.options import keys_of
from edgert.plan.structs import Plan, StagePlan
from edgert.stages.registry import Registry

RECORD = "edgert.bench.record:record"
MEASURE = "edgert.bench.alone:measure"
MEASURE_AT_PACE = "edgert.bench.alone:measure_at_pace"
_COMPILE_WITHIN_S = 600.0


@dataclass(frozen=True, slots=True)
class PipelineBench:
    """What is to be measured.

    Attributes:
        plan: The plan of the file, with its settings and variables.
        file: The file.
        settings: Changes, each ``stage.key=value``.
        variables: Values for ``${NAME}``.
        max_frames: Frames of each stream after which the whole ends; 0 for no limit.
        seconds: How long each stage is measured alone, in two halves.
        note: Told at the start of each phase.
    """

    plan: Plan
    file: Path
    settings: tuple[str, ...] = ()
    variables: Mapping[str, str] = field(default_factory=dict)
    max_frames: int = 0
    seconds: float = 2.0
    note: Callable[[str], None] = lambda _: None


def bench_pipeline(bench: PipelineBench) -> PipelineReport:
    """Measure each stage alone, before and after the whole, then workers alone at its pace.

    Raises:
        EdgertError: A stage could not be opened or failed, or the run did.
    """
    with tempfile.TemporaryDirectory(prefix="edgert-bench-") as made:
        folder = Path(made)
        paths = sink_paths(bench.plan, folder)
        plan = with_paths(bench.plan, paths)
        given = Bench(plan, _record(bench, plan, folder), str(folder), bench.seconds / 2)
        before = _measure_alone(bench, given)
        bench.note("the whole")
        whole = run_whole(_arguments(bench, paths), bench.variables, folder)
        after = _measure_alone(bench, given)
        alone = {name: before[name].and_then(after[name]) for name in before}
        whole_time = msgspec.structs.replace(given, seconds=bench.seconds)
        paced = _measure_at_pace(bench, whole_time, whole)
    return report(plan, alone, whole, paced, cgroup.cpu_quota())


def sink_paths(plan: Plan, folder: Path) -> dict[str, Path]:
    """Return a file in ``folder`` for every stage that ends the graph and has a ``path``."""
    kinds = Registry()
    return {
        stage.name: folder / f"{stage.name}{_suffix(stage)}"
        for stage in plan.stages()
        if stage.leaf >= 0 and "path" in keys_of(kinds.stage_class(stage.kind).options)
    }


def with_paths(plan: Plan, paths: Mapping[str, Path]) -> Plan:
    """Return the plan with other paths of its sinks."""

    def changed(stage: StagePlan) -> StagePlan:
        if stage.name not in paths:
            return stage
        settings = {**stage.settings, "path": str(paths[stage.name])}
        return msgspec.structs.replace(stage, settings=settings)

    workers = tuple(
        msgspec.structs.replace(worker, stages=tuple(map(changed, worker.stages)))
        for worker in plan.workers
    )
    return msgspec.structs.replace(plan, workers=workers)


def _suffix(stage: StagePlan) -> str:
    return Path(str(stage.settings.get("path", ""))).suffix or ".out"


def _record(bench: PipelineBench, plan: Plan, folder: Path) -> Recording:
    bench.note("recording frames")
    arguments = {"plan": plan, "folder": str(folder)}
    found = isolate.call(RECORD, arguments, _COMPILE_WITHIN_S, "recording frames")
    return msgspec.convert(found, Recording)


def _measure_alone(bench: PipelineBench, given: Bench) -> dict[str, Alone]:
    alone = {}
    for stage in given.plan.stages():
        place = f"stage '{stage.name}'"
        bench.note(f"{place} alone")
        arguments = {"bench": given, "stage": stage.name}
        found = isolate.call(MEASURE, arguments, _COMPILE_WITHIN_S + bench.seconds, place)
        alone[stage.name] = msgspec.convert(found, Alone)
    return alone


def _measure_at_pace(bench: PipelineBench, given: Bench, whole: Whole) -> dict[str, Alone]:
    paced = {}
    for turns in turns_of(given.plan, whole):
        place = f"worker '{turns.worker}'"
        bench.note(f"{place} alone at its pace")
        arguments = {"bench": given, "shares": turns.shares, "interval_s": turns.interval_s}
        found = isolate.call(MEASURE_AT_PACE, arguments, _COMPILE_WITHIN_S + bench.seconds, place)
        paced[turns.worker] = msgspec.convert(found, Alone)
    return paced


def _arguments(bench: PipelineBench, paths: Mapping[str, Path]) -> list[str]:
    """Return what follows ``edgert run``."""
    sinks = [
        f"{name}.path={msgspec.json.encode(str(path)).decode()}" for name, path in paths.items()
    ]
    arguments = [str(bench.file)]
    never = "restart.policy=never"  # a figure over a restart is none
    for setting in (*bench.settings, *sinks, never):
        arguments += ["--set", setting]
    if bench.max_frames:
        arguments += ["--max-frames", str(bench.max_frames)]
    return arguments

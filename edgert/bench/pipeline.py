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
- Stages are weighed by the frames that passed them in the whole run: of two streams each camera
  has half, behind a filter there are fewer.
- The whole is ``edgert run`` of the same file with the same options. Sinks write as always, but to
  a folder that is removed.
- A stage alone has the other cores idle beside it, in the whole they are busy: where cores share
  caches or their clock, that makes the ideal higher and the efficiency lower, never better.

The efficiency of a pipeline that waits for an accelerator or a live source is low and rightly so:
the CPU is not what limits it. ``alone_fps`` shows a stage that is too slow on its own.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from edgert import isolate
from edgert.bench.figures import PipelineReport, report
from edgert.bench.meter import Alone
from edgert.bench.whole import run_whole
from edgert.device import cgroup
from edgert.plan.structs import Plan, StagePlan
from edgert.stages.registry import Registry

RECORD = "edgert.bench.record:record"
MEASURE = "edgert.bench.alone:measure"
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
        seconds: How long each stage is measured alone.
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
    """Measure each stage alone, then the whole.

    Raises:
        EdgertError: A stage could not be opened or failed, or the run did.
    """
    with tempfile.TemporaryDirectory(prefix="edgert-bench-") as made:
        folder = Path(made)
        paths = sink_paths(bench.plan, folder)
        plan = with_paths(bench.plan, paths)
        alone = _measure_all(bench, plan, folder)
        bench.note("the whole")
        whole = run_whole(_arguments(bench, paths), bench.variables, folder)
    return report(plan, alone, whole, cgroup.cpu_quota())


def sink_paths(plan: Plan, folder: Path) -> dict[str, Path]:
    """Return a file in ``folder`` for every stage that ends the graph and has a ``path``."""
    kinds = Registry()
    return {
        stage.name: folder / f"{stage.name}{_suffix(stage)}"
        for stage in plan.stages()
        if stage.leaf >= 0 and "path" in kinds.stage_class(stage.kind).options.model_fields
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


def _measure_all(bench: PipelineBench, plan: Plan, folder: Path) -> dict[str, Alone]:
    plain: dict[str, Any] = msgspec.to_builtins(plan)
    shared = {"plan": plain, "folder": str(folder)}
    bench.note("recording frames")
    recording = isolate.call(RECORD, shared, _COMPILE_WITHIN_S, "recording frames")
    alone = {}
    for stage in plan.stages():
        bench.note(f"stage '{stage.name}' alone")
        found = isolate.call(
            MEASURE,
            {**shared, "stage": stage.name, "recording": recording, "seconds": bench.seconds},
            _COMPILE_WITHIN_S + bench.seconds,
            f"stage '{stage.name}'",
        )
        alone[stage.name] = msgspec.convert(found, Alone)
    return alone


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

"""``edgert bench``: what a link and a pipeline cost here, as ratios taken in one run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
import msgspec

from edgert.bench.batching import Asked, BatchingReport, bench_batching
from edgert.bench.figures import PipelineReport
from edgert.bench.infer import bench_infer
from edgert.bench.link import SIZES, LinkReport, bench_link
from edgert.bench.pipeline import PipelineBench, bench_pipeline
from edgert.cli.options import log_options, pipeline_options
from edgert.cli.planning import plan_file
from edgert.cli.progress import StatusLine
from edgert.cli.render import show, show_json, table
from edgert.cli.voice import say

_NAMES = dict(zip(SIZES, ("4 KiB", "1080p", "4K"), strict=True))
_ABOVE_0 = click.FloatRange(min=0, min_open=True)
_AS_JSON = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


@click.group()
def command() -> None:
    """Measure links and pipelines on this machine, as quiet as it can be."""


@command.command()
@click.option(
    "--rounds",
    type=click.IntRange(min=100, max=1_000_000),
    default=5000,
    show_default=True,
    help="Round trips of each size.",
)
@_AS_JSON
def link(*, rounds: int, as_json: bool) -> None:
    """Measure a round trip between two processes.

    Frames of several sizes, beside a bare eventfd.
    """
    report = bench_link(rounds)
    if as_json:
        show_json(msgspec.to_builtins(report, str_keys=True))
    else:
        show(render_link(report))


@command.command()
@pipeline_options
@click.option(
    "--frames",
    "max_frames",
    type=click.IntRange(min=2),
    help="End each stream of the whole run after so many.",
)
@click.option(
    "--seconds",
    type=click.FloatRange(min=0, min_open=True),
    default=2.0,
    show_default=True,
    help="How long each stage is measured alone: half of it before the whole, half after.",
)
@_AS_JSON
@log_options
def pipeline(  # noqa: PLR0913  one parameter an option, as click has it
    *,
    file: Path,
    variables: dict[str, str],
    settings: tuple[str, ...],
    max_frames: int | None,
    seconds: float,
    as_json: bool,
    log_level: str,
    log_format: str,
) -> None:
    """Measure each stage of FILE alone, then the whole, and compare.

    Efficiency is the CPU time that frames cost in stages which never wait, as a share of what the
    cores had. In a run most stages sleep until the next frame is there, and wake up with cold
    caches: efficiency at pace compares with stages that do the same, alone. What lies between the
    two is the price of the pace; from the second to 1 it is tokens, polls and waiting.

    Results go to a folder that is removed, not to the sinks' own files.
    """
    plan = plan_file(file, variables, settings, pull=True, line=StatusLine()).plan
    report = bench_pipeline(
        PipelineBench(
            plan=plan,
            file=file,
            settings=settings,
            variables=variables,
            max_frames=max_frames or 0,
            seconds=seconds,
            note=lambda phase: say(f"bench: {phase}"),
        )
    )
    if as_json:
        show_json(msgspec.to_builtins(report))
    else:
        show(render_pipeline(report))


@command.command()
@click.option("--streams", type=click.IntRange(1, 64), default=8, show_default=True)
@click.option(
    "--fps", type=_ABOVE_0, default=30.0, show_default=True, help="Frames a second of each stream."
)
@click.option(
    "--latency-ms",
    type=_ABOVE_0,
    default=20.0,
    show_default=True,
    help="What an inference of the emulated device takes, however many frames it has.",
)
@click.option(
    "--per-item-ms",
    type=click.FloatRange(min=0),
    default=1.0,
    show_default=True,
    help="What it takes for each frame in it.",
)
@click.option("--max-size", type=click.IntRange(2, 64), default=8, show_default=True)
@click.option(
    "--max-delay-ms",
    type=click.FloatRange(min=0),
    help="How long a batch waits.  [default: one interval of the streams]",
)
@click.option(
    "--seconds", type=_ABOVE_0, default=5.0, show_default=True, help="How long each run takes."
)
@_AS_JSON
def batching(*, as_json: bool, **asked: Any) -> None:
    """Measure batches over several streams.

    On an emulated device of known speed.
    """
    report = bench_batching(Asked(**asked), lambda phase: say(f"bench: {phase}"))
    if as_json:
        show_json(msgspec.to_builtins(report))
    else:
        show(render_batching(report))


@command.command()
@click.option(
    "--rounds",
    type=click.IntRange(min=100, max=1_000_000),
    default=2000,
    show_default=True,
    help="Inferences with each runtime.",
)
@_AS_JSON
def infer(*, rounds: int, as_json: bool) -> None:
    """Measure what an inference costs beside the model.

    With each runtime, on the CPU.
    """
    report = bench_infer(rounds)
    if as_json:
        show_json(msgspec.to_builtins(report))
    else:
        rows = [msgspec.structs.astuple(each) for each in report.overheads]
        show(table(("smallest model", "requests", "p50 ms", "p99 ms"), rows))


def render_link(report: LinkReport) -> str:
    """Return a report of links as text."""
    rows: list[tuple[str, float, str, str]] = [("eventfd alone", report.floor_us, "", "")]
    rows += [
        (f"{name} frame", trip.p50, f"{trip.p99:.2f}", f"{report.times_floor(size):.2f}")
        for size, name in _NAMES.items()
        for trip in [report.round_trip_us[str(size)]]
    ]
    one, other = report.cores
    where = f"cores {one} and {other}" if one != other else f"core {one} alone: there is no other"
    return "\n".join(
        [
            f"{report.rounds} round trips of each between two processes on {where}",
            "",
            table(("round trip", "p50 us", "p99 us", "x eventfd"), rows),
            "",
            f"a 4K frame takes {report.growth:.2f} times as long as one of 4 KiB",
        ]
    )


def render_pipeline(report: PipelineReport) -> str:
    """Return a report of a pipeline as text."""
    stages = [
        (name, cpu_ms, report.frames_per_result[name], report.alone_fps[name])
        for name, cpu_ms in report.cpu_ms_per_frame.items()
    ]
    columns = (
        report.loop_cpu_ms_per_frame,
        report.paced_cpu_ms_per_frame,
        report.whole_cpu_ms_per_frame,
    )
    workers = [(name, *(column[name] for column in columns)) for name in columns[0]]
    workers.append(("all", *(sum(column.values()) for column in columns)))
    return "\n".join(
        [
            table(("stage alone", "CPU ms a frame", "frames a result", "frames/s"), stages),
            "",
            table(("CPU ms a result", "in a loop", "at its pace", "in the whole"), workers),
            "",
            f"{report.pipeline}: {report.fps:.1f} frames/s of {report.ideal_fps:.1f} that "
            f"{report.cores:g} cores could do: efficiency {report.efficiency:.3f}",
            f"and of {report.ideal_fps_at_pace:.1f} with the stages alone at this pace: "
            f"efficiency at pace {report.efficiency_at_pace:.3f}",
            f"bottleneck, without pauses at its pace: {report.bottleneck or 'none'}",
            f"{report.copied_bytes} bytes copied beside first writes",
        ]
    )


def render_batching(report: BatchingReport) -> str:
    """Return a report of batches as text."""
    rows = [
        (name, load.offered_fps, load.fps, load.mean_size, load.p50_ms, f"{load.p99_ms:.1f}")
        for name, load in (("cameras", report.cameras), ("overload", report.overload))
    ]
    headers = ("", "offered fps", "fps", "mean batch", "latency p50 ms", "p99 ms")
    asked = report.asked
    return "\n".join(
        [
            f"{asked.streams} streams of {asked.fps:g} frames/s; an inference takes "
            f"{asked.latency_ms:g} ms and {asked.per_item_ms:g} ms a frame: "
            f"{report.device_fps:.1f} frames/s at batches of {asked.max_size}",
            "",
            table(headers, rows),
            "",
            f"of what can be done: {report.cameras.share:.3f} with the cameras, "
            f"{report.overload.share:.3f} under overload; p99 {report.cameras.p99_ms:.1f} ms of at "
            f"most {report.bound_ms:.1f} (the delay and two inferences)",
        ]
    )

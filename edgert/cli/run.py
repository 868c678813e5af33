"""``edgert run``: run a pipeline, results on standard output, everything else on standard error."""

from __future__ import annotations

import faulthandler
import logging
import math
from pathlib import Path

import click

from edgert.cli.options import code_option, log_options, pipeline_options, profile_option
from edgert.cli.plan import render_profile
from edgert.cli.planning import plan_file
from edgert.cli.progress import StatusLine, run_ticker
from edgert.cli.summary import render_summary
from edgert.cli.summary_file import require_own_file, write_summary
from edgert.cli.voice import keep_stdout, say, say_error
from edgert.models.atomic import require_writable
from edgert.profiles.use import ProfileUse
from edgert.runtime import notify
from edgert.runtime.run import OnTick, RunOptions


@click.command()
@pipeline_options
@profile_option
@code_option
@click.option("--max-frames", type=click.IntRange(min=1), help="End each stream after so many.")
@click.option(
    "--duration", type=click.FloatRange(min=0, min_open=True), help="End after so many seconds."
)
@click.option(
    "--summary",
    "summary_file",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Write the summary to this file as JSON (edgert.summary/1).",
)
@click.option(
    "--stop-timeout",
    type=click.FloatRange(min=0, min_open=True),
    default=10.0,
    show_default=True,
    help="Seconds that draining may take before what still runs is killed.",
)
@click.option("--no-progress", is_flag=True, help="Show no live progress.")
@log_options
@click.pass_context
def command(  # noqa: PLR0913  one parameter an option, as click has it
    context: click.Context,
    *,
    file: Path,
    variables: dict[str, str],
    settings: tuple[str, ...],
    profile: str | None,
    max_frames: int | None,
    duration: float | None,
    summary_file: Path | None,
    stop_timeout: float,
    no_progress: bool,
    log_level: str,
    log_format: str,
) -> None:
    """Run the pipeline in FILE to its end, or until SIGTERM or Ctrl-C, which drain it.

    A second signal kills what still runs, and ends with 1.
    """
    if duration is not None and not math.isfinite(duration):
        raise click.BadParameter("it is not a number of seconds", param_hint="--duration")
    quiet = log_format == "json"
    notifier = notify.from_environment()
    if notifier:
        faulthandler.enable()  # the watchdog ends this process by SIGABRT: then it says where it is
    line = StatusLine(wanted=not no_progress and not quiet)
    for handler in logging.getLogger().handlers:
        handler.addFilter(line.make_way)
    if summary_file:
        require_writable("--summary", summary_file)
    pipeline = plan_file(
        file, variables, settings, pull=True, line=line, profile=profile, notifier=notifier
    )
    if summary_file:
        require_own_file(summary_file, file, pipeline.plan)
    _tell_profile(pipeline.plan.profile)
    options = RunOptions(
        max_frames=max_frames or 0,
        duration_s=duration or 0.0,
        stop_timeout_s=stop_timeout,
        log_level=log_level,
    )
    with keep_stdout():  # a reload plans, too
        outcome = pipeline.run_to_outcome(options, _ticker(line, pipeline.plan.name, notifier))
    line.clear()
    if notifier:
        notifier.ended(str(outcome.errors[0]) if outcome.errors else "ended")
    summary = outcome.summary
    if not quiet and (summary.frames["read"] or summary.sources or not outcome.errors):
        say(render_summary(summary))
    if summary_file:
        write_summary(summary_file, summary)
    for error in outcome.errors:
        say_error(error)
    context.exit(outcome.exit_code)


def _ticker(line: StatusLine, name: str, notifier: notify.Notifier | None) -> OnTick | None:
    """Return who is told of a run's progress: the service manager, a terminal, or nobody."""
    if notifier:
        return notifier.tick
    return run_ticker(line, name) if line.is_shown else None


def _tell_profile(profile: ProfileUse | None) -> None:
    """Say which profile it was that filled something in."""
    if profile is not None and profile.given:
        for line in render_profile(profile):
            say(line)

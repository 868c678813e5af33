"""``edgert ctl``: ask a run where it stands, and change it while it goes on."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import click

from edgert import logs
from edgert.cli.render import show, show_json, table

if TYPE_CHECKING:
    from edgert.control.requests import Level, StatusIs, ToRun

RUNS_SCHEMA = "edgert.runs/1"
DONE_SCHEMA = "edgert.done/1"
_START = "Start it with 'edgert run FILE'"
_AS_WHOM = "; that of a service answers its own user and root: 'sudo edgert ctl'"
STAGE_HEADERS = ("STAGE", "STATE", "PID", "RESTARTS", "FRAMES", "LOST", "P50 MS", "P95 MS", "ON")
SOURCE_HEADERS = ("SOURCE", "STATE", "READ", "PROCESSED", "DROPPED", "LOST", "IN FLIGHT")


def _complete_runs(_context: click.Context, _option: click.Parameter, begun: str) -> list[str]:
    from edgert.runtime.folder import running

    return [name for name in running() if name.startswith(begun)]


as_json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


@click.group(invoke_without_command=True)
@click.argument("pipeline", required=False, shell_complete=_complete_runs)
@click.option("--list", "wants_list", is_flag=True, help="List the pipelines that run.")
@click.option(
    "--timeout",
    type=click.FloatRange(min=0, min_open=True, max=3600),
    default=30.0,
    show_default=True,
    help="Seconds to wait for a word of it.",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_context
def command(
    context: click.Context,
    *,
    pipeline: str | None,
    wants_list: bool,
    timeout: float,
    as_json: bool,
) -> None:
    """Control the run of PIPELINE: the name that stands in its file, not the file's.

    Without a command its status is shown; without a name, the pipelines of this user that run;
    root sees those of services, too.
    """
    if wants_list or pipeline is None:
        _show_runs(as_json=as_json)
        context.exit()
    context.obj = _Run(pipeline, timeout)
    if context.invoked_subcommand is None:
        _show_status(context.obj, as_json=as_json)


@command.command("status")
@as_json_option
@click.pass_obj
def status(run: _Run, *, as_json: bool) -> None:
    """Show where the run stands (JSON: edgert.status/1)."""
    _show_status(run, as_json=as_json)


@command.command("drain")
@as_json_option
@click.pass_obj
def drain(run: _Run, *, as_json: bool) -> None:
    """Let every stream end, as SIGTERM does.

    What is under way is finished.
    """
    from edgert.control.requests import Drain

    _show_done(run.ask(Drain()), as_json=as_json)


@command.command("restart")
@click.argument("stage")
@as_json_option
@click.pass_obj
def restart(run: _Run, *, stage: str, as_json: bool) -> None:
    """Start the worker of STAGE again.

    It finishes its frame first: none is lost.
    """
    from edgert.control.requests import Restart

    _show_done(run.ask(Restart(stage)), as_json=as_json)


@command.command("set")
@click.argument("key", metavar="STAGE.KEY")
@click.argument("value")
@as_json_option
@click.pass_obj
def set_key(run: _Run, *, key: str, value: str, as_json: bool) -> None:
    """Change a key of a stage until the next reload.

    Not every key may change while it runs.
    """
    from edgert.control.requests import Set

    _show_done(run.ask(Set(key, value)), as_json=as_json)


@command.command("reload")
@as_json_option
@click.pass_obj
def reload(run: _Run, *, as_json: bool) -> None:
    """Take over what has changed in the file, as SIGHUP does."""
    from edgert.control.requests import Reload

    _show_done(run.ask(Reload()), as_json=as_json)


@command.command("log-level")
@click.argument("level", type=click.Choice(logs.LEVELS, case_sensitive=False))
@as_json_option
@click.pass_obj
def log_level(run: _Run, *, level: str, as_json: bool) -> None:
    """Log from LEVEL on, at once and in every worker."""
    from edgert.control.requests import SetLogLevel

    _show_done(run.ask(SetLogLevel(cast("Level", level))), as_json=as_json)


class _Run:
    """A run that goes on somewhere on this machine."""

    def __init__(self, name: str, timeout_s: float) -> None:
        self._name = name
        self._timeout_s = timeout_s

    def ask(self, message: ToRun) -> Any:
        """Ask, and return the answer, ``StatusIs`` or ``Done``.

        Raises:
            UserError: No run of that name, or it refuses.
            RunError: It does not answer, or fails at it.
        """
        from edgert.cli.progress import StatusLine
        from edgert.control.commands import ask
        from edgert.control.requests import Refused
        from edgert.errors import EXIT_USER, Fault, RunError, UserError

        line = StatusLine()
        answer = ask(self._socket(), message, self._timeout_s, line.show)
        line.clear()
        place = f"pipeline '{self._name}'"
        if answer is None:
            fault = f"has not answered within {self._timeout_s:g} s"
            mend = "It may still be at it: look at its status and log, or give --timeout longer"
            raise RunError(place, fault, mend)
        if isinstance(answer, Refused):
            error = (UserError if answer.exit_code == EXIT_USER else RunError)(place, "refuses")
            error.faults = tuple(Fault(f.place, f.fault, f.mend) for f in answer.faults)
            raise error
        return answer

    def _socket(self) -> Path:
        from edgert.errors import UserError
        from edgert.pipeline.near import choices
        from edgert.runtime.folder import running

        found = running()
        if self._name not in found:
            there = f"{choices(self._name, found, 'Running are')}. " if found else ""
            mend = f"{there}{_START}{_AS_WHOM if os.getuid() else ''}"
            raise UserError(f"pipeline '{self._name}'", "is not running under this user", mend)
        return found[self._name]


def _show_runs(*, as_json: bool) -> None:
    from edgert.runtime.folder import running

    names = list(running())
    if as_json:
        show_json({"schema": RUNS_SCHEMA, "pipelines": names})
    else:
        show("\n".join(names) or "No pipeline of this user is running.")


def _show_done(answer: Any, *, as_json: bool) -> None:
    if as_json:
        show_json({"schema": DONE_SCHEMA, "done": answer.said})
    else:
        show(answer.said)


def _show_status(run: _Run, *, as_json: bool) -> None:
    from edgert.control.requests import GetStatus

    answer: StatusIs = run.ask(GetStatus())
    if as_json:
        show_json(answer.status)
    else:
        show(render_status(answer.status))


def render_status(status: dict[str, Any]) -> str:
    """Return a status for people."""
    frames = status["frames"]
    head = (
        f"{status['pipeline']}: {status['state']} for {status['uptime_s']:.0f} s, "
        f"{status['fps']:.1f} frames/s; read {frames['read']}, processed {frames['processed']}, "
        f"dropped {frames['dropped']}, lost {frames['lost']}"
    )
    sources = table(SOURCE_HEADERS, [_source(*each) for each in status["sources"].items()])
    stages = table(STAGE_HEADERS, [_stage(*each) for each in status["stages"].items()])
    swaps = [_swap(*each) for each in status["swaps"].items()]
    down = [
        f"stage '{name}' is {one['state']}: {one['why_down']}"
        for name, one in status["stages"].items()
        if one["why_down"]
    ]
    return "\n\n".join([head, stages, sources, *down, *status["waits"], *swaps])


def _swap(name: str, swap: dict[str, Any]) -> str:
    how = swap["said"] or (
        f"model {swap['model']!r} is tried: {swap['frames']} of {swap['of']} frames so far"
    )
    return f"stage '{name}', swap: {how}"


def _stage(name: str, stage: dict[str, Any]) -> tuple[Any, ...]:
    service = stage["service_ms"]
    times = ["-" if service[key] is None else service[key] for key in ("p50", "p95")]
    counts = [stage[key] for key in ("pid", "restarts", "frames", "lost")]
    return (name, stage["state"], *counts, *times, stage["device"] or "")


def _source(name: str, source: dict[str, Any]) -> tuple[Any, ...]:
    keys = ("read", "processed", "dropped", "lost", "in_flight")
    return (name, source["state"], *(source[key] for key in keys))

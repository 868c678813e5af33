"""``edgert service``: pipelines as services of systemd."""

from __future__ import annotations

import logging
import os
from pathlib import Path

import click

from edgert.cli.render import show, show_json, table
from edgert.cli.voice import say
from edgert.errors import UserError
from edgert.service import install, manager, program
from edgert.service.files import Step
from edgert.service.layout import Layout, require_name, unit_name

_root_option = click.option(
    "--root",
    type=click.Path(path_type=Path, exists=True, file_okay=False, resolve_path=True),
    default="/",
    help="Root of another system, such as an image that is being made.",
)
_dry_option = click.option(
    "--dry-run", is_flag=True, help="Say what would be done, and do nothing."
)


@click.group("service")
def command() -> None:
    """Run pipelines as services of systemd: at boot, watched, sandboxed, without root."""


@command.command("install")
@click.argument("name")
@click.argument("file", type=click.Path(path_type=Path))
@_root_option
@_dry_option
@click.option("--now", is_flag=True, help="Start it as well, and wait until it is ready.")
def install_command(name: str, file: Path, root: Path, *, dry_run: bool, now: bool) -> None:
    """Install the pipeline in FILE as service NAME.

    It starts with the machine. FILE is checked, then copied to /etc/edgert/NAME.yaml; variables go
    into /etc/edgert/NAME.env. What somebody has edited is never overwritten: what is new is then
    put beside it.
    """
    layout = Layout(root)
    if now and not layout.is_here:
        raise click.BadParameter("it starts nothing in another --root", param_hint="--now")
    require_name(name)
    started = _program(layout)
    from edgert.cli import service_file  # what the other commands need not wait for

    text, cores = service_file.examine(layout, name, file)
    _tell(install.install(layout, name, text, started, cores, dry=dry_run))
    if dry_run:
        return
    manager.make_user(layout)
    manager.enable(layout, name)
    if now:
        manager.restart(name)
    _tell_next(layout, name, now=now)


@command.command("remove")
@click.argument("name")
@_root_option
@_dry_option
def remove_command(name: str, root: Path, *, dry_run: bool) -> None:
    """Drain service NAME, and remove what was installed for it.

    Files that were edited, results and the user stay.
    """
    layout = Layout(root)
    _require_installed(layout, require_name(name))
    if not dry_run:
        manager.disable(layout, name)
    _tell(install.remove(layout, name, dry=dry_run))
    if not dry_run:
        manager.reload_units(layout)


@command.command("status")
@click.argument("names", metavar="[NAME]...", nargs=-1)
@click.option("--json", "as_json", is_flag=True, help="Print it as JSON.")
def status_command(names: tuple[str, ...], *, as_json: bool) -> None:
    """Show how services do: all that are installed, or those named."""
    layout = Layout()
    for name in names:
        _require_installed(layout, name)
    states = [manager.state(name) for name in names or layout.names()]
    if as_json:
        show_json({"schema": "edgert.services/1", "services": [s._asdict() for s in states]})
    elif not states:
        show("No pipeline is installed: edgert service install NAME FILE")
    else:
        headers = ("name", "at boot", "state", "restarts", "what it says")
        rows = [(s.name, s.enabled, f"{s.active} ({s.sub})", s.restarts, s.status) for s in states]
        show(table(headers, rows))


@command.command("logs")
@click.argument("name", required=False)
@click.option("--follow", "-f", is_flag=True, help="Go on with what comes.")
@click.option("--lines", "-n", type=click.IntRange(min=1), help="The last so many lines alone.")
def logs_command(name: str | None, *, follow: bool, lines: int | None) -> None:
    """Show what services have logged: all of them, or NAME alone."""
    if name is not None:
        _require_installed(Layout(), require_name(name))
    arguments = ["journalctl", f"--unit={unit_name(name or '*')}"]
    arguments += ["--follow"] if follow else []
    arguments += [f"--lines={lines}"] if lines else []
    try:
        os.execvp("journalctl", arguments)  # noqa: S606, S607  no shell, and the system's own
    except FileNotFoundError as error:
        raise UserError("journalctl", "is not there", "Install systemd") from error


def _program(layout: Layout) -> Path:
    if layout.is_here:
        return program.own_program()
    if not (layout.root / program.DEFAULT.relative_to("/")).exists():
        say(f"warning: there is no {program.DEFAULT} in {layout.root} yet", logging.WARNING)
    return program.DEFAULT


def _require_installed(layout: Layout, name: str) -> None:
    if name not in layout.names():
        there = ", ".join(layout.names()) or "none"
        raise UserError(f"service '{name}'", "is not installed", f"Installed are: {there}")


def _tell(steps: list[Step]) -> None:
    for step in steps:
        show(str(step))


def _tell_next(layout: Layout, name: str, *, now: bool) -> None:
    if not layout.is_here or now:
        show(f"{unit_name(name)} is enabled" + (" and ready" if now else ""))
    else:
        show(f"{unit_name(name)} is enabled: start it with `systemctl start {unit_name(name)}`")

"""``edgert check``: every fault of pipeline files in one run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import click

from edgert.cli.options import change_options, code_option, profile_option
from edgert.cli.render import show, show_json
from edgert.cli.voice import keep_stdout
from edgert.errors import EXIT_USER, Fault, PipelineError
from edgert.models.reader import Models
from edgert.pipeline.check import check
from edgert.pipeline.load import read
from edgert.plan.build import find_faults
from edgert.profiles.choose import Chosen, choose_or_say
from edgert.redact import redact_all
from edgert.stages.registry import Registry


@click.command("check")
@click.argument(
    "files", metavar="FILE...", nargs=-1, required=True, type=click.Path(path_type=Path)
)
@change_options
@profile_option
@code_option
@click.option("--json", "as_json", is_flag=True, help="Print what was found as JSON.")
def command(
    files: tuple[Path, ...],
    settings: tuple[str, ...],
    variables: dict[str, str],
    profile: str | None,
    as_json: bool,  # noqa: FBT001  click hands it over
) -> None:
    """Find every fault of pipeline files.

    Faults go to standard error, one a line, as file:line:column: place: fault. mend. The exit code
    is 2 if there are any.
    """
    kinds = Registry()
    chosen, wrong = choose_or_say(profile)
    _warn(chosen.warnings)
    for fault in wrong:
        click.echo(str(fault), err=True)
    with keep_stdout():
        reports = [examine(file, variables, settings, kinds, chosen) for file in files]
    for report in reports:
        _tell(report)
        if not as_json and not wrong:
            _tell_good(report)
    if as_json:
        named = {"name": chosen.profile.name, "why": chosen.why} if chosen.profile else None
        data = [_as_data(report) for report in reports]
        show_json({"schema": "edgert.check/1", "profile": named, "files": data})
    if wrong or any(report.faults for report in reports):
        raise click.exceptions.Exit(EXIT_USER)


@dataclass(frozen=True, slots=True)
class Report:
    """What is to be said of one file."""

    file: str
    stages: int
    faults: tuple[Fault, ...]
    warnings: tuple[Fault, ...] = ()


def examine(
    file: Path,
    variables: Mapping[str, str],
    settings: Sequence[str],
    kinds: Registry,
    chosen: Chosen,
) -> Report:
    """Return everything that is wrong with one file."""
    try:
        document, known = chosen.apply(read(file, variables, settings), kinds)
    except PipelineError as error:
        return Report(str(file), 0, error.faults)
    checked = check(document, kinds)
    faults = find_faults(document, checked, kinds, Models(document.folder), known)
    return Report(str(file), len(document.spec.stages), faults, checked.warnings)


def _tell(report: Report) -> None:
    for fault in report.faults:
        click.echo(str(fault), err=True)
    _warn(map(str, report.warnings))


def _warn(warnings: Iterable[str]) -> None:
    for warning in warnings:
        click.echo(f"warning: {warning}", err=True)


def _tell_good(report: Report) -> None:
    if not report.faults:
        show(f"{report.file}: ok, {report.stages} stage{'' if report.stages == 1 else 's'}")


def _as_data(report: Report) -> dict[str, Any]:
    plain: dict[str, object] = redact_all(asdict(report))
    return {"ok": not report.faults, **plain}

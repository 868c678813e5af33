"""``edgert coverage``: what a device really runs, where, and with what numbers."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import click

from edgert.cli.coverage_merge import command as merge
from edgert.cli.progress import StatusLine

if TYPE_CHECKING:
    from edgert.coverage.report.baseline import FailOn
    from edgert.coverage.suites.item import Item

FORMS = ("published", "frozen", "int8-qdq", "static-batch", "rank-4")
_PREPARE_WITHIN_S = 600.0


class CommandOrModels(click.Group):
    """A group whose other arguments, where the first is no command, are those of ``run``."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Put ``run`` before arguments that name no command."""
        if args and args[0] not in (*self.commands, "-h", "--help"):
            args = ["run", *args]
        return super().parse_args(ctx, args)


@click.group(cls=CommandOrModels)
def command() -> None:
    """Show what a device really runs of operators and models, where, and with what numbers.

    "edgert coverage --suite onnx --device D" is short for "edgert coverage run ...".
    """


command.add_command(merge, "merge")


@command.command()
@click.option("--device", required=True, help="adapter:DEVICE, for example onnxruntime:CPU.")
@click.option(
    "--suite",
    type=click.Choice(["onnx"]),
    required=True,
    help="onnx: every node case of the onnx package.",
)
@click.option(
    "--forms",
    default="published",
    show_default=True,
    help=f"Forms of the cases, with commas: {', '.join(FORMS)}; or all.",
)
@click.option("--only", default="", help="Operators, with commas: Conv,Gemm. All if not given.")
@click.option(
    "--jobs", type=click.IntRange(min=1, max=64), help="Cases at once; a core each if not given."
)
@click.option(
    "--timeout",
    "timeout_s",
    type=click.FloatRange(min=0, min_open=True),
    default=20.0,
    show_default=True,
    help="Seconds one case may take.",
)
@click.option("--fresh", is_flag=True, help="Do not go on where a run that was ended had come to.")
@click.option(
    "--report",
    "report_files",
    type=click.Path(dir_okay=False, path_type=Path),
    multiple=True,
    help="File for the report: .html, .json, .xml (JUnit), .md or .csv. Repeatable.",
)
@click.option(
    "--baseline",
    type=click.Path(dir_okay=False, path_type=Path),
    help="JSON report of before: show what was won and lost since.",
)
@click.option(
    "--fail-on",
    type=click.Choice(["regression", "unsupported", "mismatch"]),
    help="End with 1 if anything is worse than the baseline, not on the device, or differs.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the whole report as JSON.")
def run(  # noqa: PLR0913  one parameter an option, as click has it
    *,
    device: str,
    suite: str,
    forms: str,
    only: str,
    jobs: int | None,
    timeout_s: float,
    fresh: bool,
    report_files: tuple[Path, ...],
    baseline: Path | None,
    fail_on: FailOn | None,
    as_json: bool,
) -> None:
    """Ask a device about every operator: where it ran, and how near its numbers are.

    Each case runs in a child process: one that crashes, hangs or eats memory is that case's result.
    A run that was ended goes on where it was.
    """
    from edgert.cli.coverage_report import deliver, prepare
    from edgert.coverage.adapters.registry import spec_of
    from edgert.coverage.run import CaseRun, run_cases
    from edgert.device.memory import available_bytes

    del suite  # one today
    delivery = prepare(report_files, baseline, fail_on, as_json=as_json)
    count = jobs or len(os.sched_getaffinity(0))
    items, versions = _onnx_items(_forms_of(forms), only)
    line = StatusLine()
    found = run_cases(
        CaseRun(
            device=device,
            spec=spec_of(device, {}, available_bytes().bytes // (2 * count)),
            items=items,
            versions=versions,
            jobs=count,
            timeout_s=timeout_s,
            fresh=fresh,
        ),
        _ticker(line, device),
    )
    line.clear()
    deliver(found, delivery)


def _forms_of(text: str) -> list[str]:
    from edgert.errors import UserError

    names = list(FORMS) if text == "all" else [name.strip() for name in text.split(",")]
    for name in names:
        if name not in FORMS:
            mend = f"Forms: {', '.join(FORMS)}, or all"
            raise UserError("--forms", f"there is no form {name!r}", mend)
    return names


def _onnx_items(forms: list[str], only: str) -> tuple[list[Item], dict[str, str]]:
    """Return the cases of the onnx package in some forms, and its version."""
    from edgert import isolate
    from edgert.coverage.suites.onnx_cases import read_index
    from edgert.errors import UserError
    from edgert.models.cache import cache_root

    found = isolate.call(
        "edgert.coverage.suites.onnx_cases:prepare",
        {"folder": str(cache_root() / "coverage"), "forms": forms},
        _PREPARE_WITHIN_S,
        "suite onnx",
    )
    items = [item for form in forms for item in read_index(found[form])]
    known = {item.operator for item in items}
    wanted = {name.strip() for name in only.split(",") if name.strip()} or known
    if unknown := sorted(wanted - known):
        fault = f"the suite has no operator {', '.join(unknown)}"
        raise UserError("--only", fault, "Names as in ONNX: Conv, Gemm, ai.onnx.ml::Scaler")
    return [item for item in items if item.operator in wanted], {"onnx": found["onnx"]}


def _ticker(line: StatusLine, device: str) -> Callable[[int, int], None]:
    def tick(done: int, total: int) -> None:
        line.show(f"{device}: {done} of {total} cases")

    return tick

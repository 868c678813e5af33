"""``edgert coverage``: what a device really runs, where, and with what numbers."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import click

from edgert.cli.progress import StatusLine
from edgert.cli.render import show, show_json, table

if TYPE_CHECKING:
    from edgert.coverage.record import Case, Report
    from edgert.coverage.suites.item import Item

FORMS = ("published", "frozen", "int8-qdq", "static-batch", "rank-4")
_PREPARE_WITHIN_S = 600.0
_HEADERS = ("OPERATOR", "CASES", "ON DEVICE", "EQUAL", "DIFFERS", "UNSUPPORTED", "OTHER")


@click.command()
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
    type=click.Path(dir_okay=False, path_type=Path),
    help="File for the whole report: .json.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the whole report as JSON.")
def command(  # noqa: PLR0913  one parameter an option, as click has it
    *,
    device: str,
    suite: str,
    forms: str,
    only: str,
    jobs: int | None,
    timeout_s: float,
    fresh: bool,
    report: Path | None,
    as_json: bool,
) -> None:
    """Ask a device about every operator: where it ran, and how near its numbers are.

    Each case runs in a child process: one that crashes, hangs or eats memory is that case's result.
    A run that was ended goes on where it was.
    """
    from edgert.coverage.adapters.registry import spec_of
    from edgert.coverage.run import CaseRun, run_cases
    from edgert.device.memory import available_bytes

    del suite  # one today
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
    _deliver(found, report, as_json=as_json)


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


def _deliver(found: Report, file: Path | None, *, as_json: bool) -> None:
    import msgspec

    from edgert.models.atomic import write_atomically

    if file is not None:
        write_atomically(file, msgspec.json.format(msgspec.json.encode(found), indent=1))
    if as_json:
        show_json(msgspec.to_builtins(found))
    else:
        show("\n\n".join((table(_HEADERS, _rows(found.cases)), _total(found))))


def _rows(cases: list[Case]) -> list[tuple[object, ...]]:
    by_operator: dict[str, list[Case]] = {}
    for case in cases:
        by_operator.setdefault(case.operator, []).append(case)
    return [(operator, *_counts(each)) for operator, each in by_operator.items()]


def _counts(cases: list[Case]) -> tuple[int, int, int, int, int, int]:
    where = Counter(case.placement for case in cases)
    how = Counter(case.numerics for case in cases)
    named = how["equal"] + how["differs"] + how["unsupported"]
    return (
        len(cases),
        where["device"],
        how["equal"],
        how["differs"],
        how["unsupported"],
        len(cases) - named,
    )


def _total(found: Report) -> str:
    versions = ", ".join(f"{name} {version}" for name, version in found.versions.items())
    evidence = ", ".join(sorted({case.evidence for case in found.cases}))
    cases, device, equal, differs, unsupported, other = _counts(found.cases)
    return (
        f"{found.device} ({versions}); evidence: {evidence or 'none'}\n"
        f"{cases} cases: {device} wholly on the device; {equal} equal, {differs} differ, "
        f"{unsupported} unsupported, {other} failed otherwise"
    )

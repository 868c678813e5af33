"""What ``edgert coverage`` shows and writes of a report, and whether that fails the run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from edgert.cli.render import sentences, show, show_json, table
from edgert.coverage.record import Case, Model, Report
from edgert.coverage.report.baseline import Change, Comparison, FailOn, against, failures
from edgert.coverage.report.cells import by_operator, said_placement
from edgert.coverage.report.read import read_reports
from edgert.coverage.report.write import check_path, write
from edgert.device.memory import in_units
from edgert.errors import RunError, UserError
from edgert.wording import counted

_HEADERS = ("OPERATOR", "CASES", "ON DEVICE", "EQUAL", "DIFFERS", "UNSUPPORTED", "OTHER")
_MODEL_HEADERS = (
    "MODEL", "PLACEMENT", "NODES", "MACS", "PARTS", "CROSSINGS", "NUMERICS", "MAX ERROR", "WHY",
)  # fmt: skip
_REFUSED_HEADERS = ("MODEL", "NOT ON THE DEVICE", "NODES", "MACS", "WHY")
_MOST_CHANGES = 40
_MOST_NAMES = 5


@dataclass(frozen=True, slots=True)
class Delivery:
    """What is to become of a report.

    Attributes:
        files: Where it is written.
        baseline: The reports of before; empty for none.
        fail_on: What fails the run.
        as_json: Whether the whole report is printed.
    """

    files: tuple[Path, ...]
    baseline: tuple[Report, ...]
    fail_on: FailOn | None
    as_json: bool


def prepare(
    files: tuple[Path, ...], baseline: Path | None, fail_on: FailOn | None, *, as_json: bool
) -> Delivery:
    """Find the faults of what is asked before hours of work, not after.

    Raises:
        UserError: A file has no known format, the baseline is none, or is missing.
    """
    for file in files:
        check_path(file)
    if fail_on == "regression" and baseline is None:
        mend = "Add --baseline REPORT.json, a report of before"
        raise UserError("--fail-on regression", "there is nothing to compare with", mend)
    before = tuple(read_reports(baseline)) if baseline is not None else ()
    return Delivery(files, before, fail_on, as_json)


def deliver(report: Report, delivery: Delivery) -> None:
    """Write and show a report.

    Raises:
        UserError: The baseline is of another device.
        RunError: It has what the run is to fail on.
    """
    for file in delivery.files:
        write([report], file)
    comparison = _comparison(report, delivery.baseline) if delivery.baseline else None
    if delivery.as_json:
        show_json(msgspec.to_builtins(report))
    else:
        said = [*_tables(report), total(report), *([_changes(comparison)] if comparison else [])]
        show("\n\n".join(said))
    if delivery.fail_on is not None:
        _fail(report, comparison, delivery.fail_on)


def require_answers(report: Report) -> None:
    """See to it that at least one model could be asked about.

    Raises:
        UserError: Nothing is known of any: what was named are no models, or none for this runtime.
    """
    unknown = [each for each in report.models if each.placement == "unknown" and not each.nodes]
    if len(unknown) == len(report.models):
        what = counted(len(unknown), "model")
        fault = f"nothing could be asked about the {what} named"
        raise UserError("edgert coverage", fault, "See the reasons above")


def total(report: Report) -> str:
    """Return a report in a few lines."""
    found: list[Case | Model] = [*report.cases, *report.models]
    versions = ", ".join(f"{name} {version}" for name, version in report.versions.items())
    evidence = ", ".join(sorted({each.evidence for each in found}))
    lines = [f"{report.device} ({versions}); evidence: {evidence or 'none'}"]
    lines += [_line(report.cases, "case")] if report.cases else []
    lines += [_line(report.models, "model")] if report.models else []
    return "\n".join(lines)


def _line(found: Sequence[Case | Model], what: str) -> str:
    number, device, equal, differs, unsupported, other = _counts(found)
    left = sum(each.numerics == "not-run" for each in found)
    where = "listed" if {each.evidence for each in found} == {"static-list"} else "on the device"
    if equal or differs:
        said = f"{equal} equal, {differs} differ, {unsupported} unsupported, {other - left} failed"
        said += f", {left} not compared" if left else ""
    else:  # a compiler, a list: there are no numbers
        said = f"{unsupported} unsupported, {other - left} failed; no numbers to compare"
    return f"{counted(number, what)}: {device} wholly {where}; {said}"


def _tables(report: Report) -> list[str]:
    tables = [table(_HEADERS, _rows(report.cases))] if report.cases else []
    if report.models:
        tables.append(table(_MODEL_HEADERS, map(_model_row, report.models)))
    refused = [(model.model, each) for model in report.models for each in model.refused]
    if refused:
        rows = [
            (name, each.operator, each.nodes, each.macs, sentences(each.reason, each.mend))
            for name, each in refused
        ]
        tables.append(table(_REFUSED_HEADERS, rows))
    return tables


def _model_row(model: Model) -> tuple[object, ...]:
    return (
        model.model,
        said_placement(model),
        _percent(model.share_of_nodes),
        _percent(model.share_of_macs),
        "" if model.partitions is None else model.partitions,
        _crossings(model),
        model.numerics,
        "" if model.max_error is None else f"{model.max_error:.3g}",
        sentences(model.reason, model.mend),
    )


def _crossings(model: Model) -> str:
    if model.crossings is None:
        return "not told"
    moved = [each.size_bytes for each in model.crossings]
    known = in_units(sum(size or 0 for size in moved)) if None not in moved else "unknown size"
    return f"{len(moved)}, {known}" if moved else ""


def _percent(share: float | None) -> str:
    return "" if share is None else f"{share:.1%}"


def _comparison(report: Report, baseline: Sequence[Report]) -> Comparison:
    for before in baseline:
        if before.device == report.device:
            return against(before, report)
    there = ", ".join(before.device for before in baseline)
    raise UserError("--baseline", f"is of {there}, not of {report.device}", "Name one of its own")


def _fail(report: Report, comparison: Comparison | None, fail_on: FailOn) -> None:
    names = failures(fail_on, report, comparison)
    if names:
        more = f" and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else ""
        said = f"{', '.join(names[:_MOST_NAMES])}{more}"
        raise RunError(f"--fail-on {fail_on}", f"{len(names)} found: {said}")


def _rows(cases: list[Case]) -> list[tuple[object, ...]]:
    return [(operator, *_counts(each)) for operator, each in by_operator(cases).items()]


def _counts(cases: Sequence[Case | Model]) -> tuple[int, int, int, int, int, int]:
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


def _changes(comparison: Comparison) -> str:
    versions = [
        f"{name} {before or 'none'} -> {after or 'none'}"
        for name, (before, after) in comparison.versions.items()
    ]
    counts = (
        f"since the baseline: {len(comparison.won)} won, {len(comparison.lost)} lost, "
        f"{len(comparison.new)} new, {len(comparison.gone)} gone"
    )
    lines = [f"{counts} ({', '.join(versions) or 'the same versions'})"]
    for sign, changes in (("+", comparison.won), ("-", [*comparison.lost, *comparison.gone])):
        lines += [_change(sign, change) for change in changes[:_MOST_CHANGES]]
        if len(changes) > _MOST_CHANGES:
            lines.append(f"{sign} and {len(changes) - _MOST_CHANGES} more")
    return "\n".join(lines)


def _change(sign: str, change: Change) -> str:
    why = f": {change.reason}" if change.reason else ""
    return f"{sign} {change.name}: {change.before or 'new'} -> {change.after or 'gone'}{why}"

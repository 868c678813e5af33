"""What was won and lost between two reports of one device: two drivers, two runtimes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Literal

import msgspec

from edgert.coverage.record import Case, Model, Report
from edgert.coverage.report.cells import ORDER, Verdict, verdict

FailOn = Literal["regression", "unsupported", "mismatch"]
_UNSUPPORTED: tuple[Verdict, ...] = ("refused", "cpu", "partly", "failed", "unknown")


class Change(msgspec.Struct, frozen=True):
    """One case or model whose verdict is another than before.

    Attributes:
        name: ``case:form``, or the model.
        before: Its verdict in the baseline; empty where the baseline has none.
        after: Its verdict now; empty where it is gone.
        reason: Why, now.
    """

    name: str
    before: Verdict | Literal[""]
    after: Verdict | Literal[""]
    reason: str = ""


class Comparison(msgspec.Struct, frozen=True):
    """What differs between a baseline and a report.

    Attributes:
        versions: Versions that are not the same: name -> before and after.
        won: Better than before.
        lost: Worse than before.
        new: Not in the baseline.
        gone: Only in the baseline, of operators and forms that the report is about.
    """

    versions: dict[str, tuple[str, str]]
    won: list[Change]
    lost: list[Change]
    new: list[Change]
    gone: list[Change]


def against(baseline: Report, report: Report) -> Comparison:
    """Compare a report with its baseline; latencies and errors within tolerance do not count."""
    before, after = _by_name(baseline), _by_name(report)
    parts = {_part_of(found) for found in after.values()}
    both = [
        Change(name, verdict(before[name]), verdict(found), found.reason)
        for name, found in after.items()
        if name in before and verdict(before[name]) != verdict(found)
    ]
    return Comparison(
        versions=_versions(baseline.versions, report.versions),
        won=[change for change in both if _rank(change.after) > _rank(change.before)],
        lost=[change for change in both if _rank(change.after) < _rank(change.before)],
        new=[
            Change(name, "", verdict(found), found.reason)
            for name, found in after.items()
            if name not in before
        ],
        gone=[
            Change(name, verdict(found), "")
            for name, found in before.items()
            if name not in after and _part_of(found) in parts
        ],
    )


def failures(fail_on: FailOn, report: Report, comparison: Comparison | None) -> list[str]:
    """Return the names for which a run is to fail.

    Args:
        fail_on: ``regression``: lost or gone since the baseline; ``unsupported``: not wholly on
            the device; ``mismatch``: numbers that differ.
        report: The report.
        comparison: With the baseline; what ``regression`` needs.
    """
    if fail_on == "regression":
        changes = [] if comparison is None else [*comparison.lost, *comparison.gone]
        return [change.name for change in changes]
    wanted: Callable[[Verdict], bool] = (
        (lambda found: found == "differs")
        if fail_on == "mismatch"
        else (lambda found: found in _UNSUPPORTED)
    )
    return [name for name, found in _by_name(report).items() if wanted(verdict(found))]


def _part_of(found: Case | Model) -> tuple[str, str]:
    """Return what a run is narrowed down to by options: fewer of these is no loss."""
    return (found.operator, found.form) if isinstance(found, Case) else (found.model, "model")


def _rank(found: Verdict | Literal[""]) -> int:
    return ORDER.index(found) if found else -1


def _by_name(report: Report) -> dict[str, Case | Model]:
    found: dict[str, Case | Model] = {f"{case.case}:{case.form}": case for case in report.cases}
    found.update((model.model, model) for model in report.models)
    return found


def _versions(before: Mapping[str, str], after: Mapping[str, str]) -> dict[str, tuple[str, str]]:
    names = sorted({*before, *after})
    pairs = {name: (before.get(name, ""), after.get(name, "")) for name in names}
    return {name: pair for name, pair in pairs.items() if pair[0] != pair[1]}

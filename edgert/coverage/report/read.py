"""Reading reports back, and putting those of several devices side by side."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import msgspec

from edgert.coverage.record import Report
from edgert.errors import UserError

_MOST_BYTES = 256 << 20


class Merged(msgspec.Struct, frozen=True, kw_only=True):
    """Reports of several devices side by side.

    Attributes:
        reports: In the order they were given.
        schema: Name and version of this format.
    """

    schema: Literal["edgert.coverage.merged/1"] = "edgert.coverage.merged/1"
    reports: list[Report]


def read_reports(path: Path) -> list[Report]:
    """Read a report, or what ``merge`` made of several.

    Raises:
        UserError: It cannot be read, or is no report.
    """
    place = str(path)
    try:
        if path.stat().st_size > _MOST_BYTES:
            raise UserError(
                place, "is far too large for a report", "Name an 'edgert coverage' JSON"
            )
        data = path.read_bytes()
    except OSError as error:
        raise UserError(place, f"cannot be read: {error.strerror}", "Name a JSON report") from error
    try:
        schema = msgspec.json.decode(data, type=_Tagged).schema
        if schema == "edgert.coverage.merged/1":
            return msgspec.json.decode(data, type=Merged).reports
        return [msgspec.json.decode(data, type=Report)]
    except msgspec.DecodeError as error:
        mend = "Name a file that 'edgert coverage --report FILE.json' wrote"
        raise UserError(place, f"is no report: {error}", mend) from error


def merge(reports: Sequence[Report]) -> Merged:
    """Put reports side by side; of one device's cases and models the union.

    Raises:
        UserError: Two of the same device say different things of the same case.
    """
    by_device: dict[str, Report] = {}
    for report in reports:
        before = by_device.get(report.device)
        by_device[report.device] = report if before is None else _join(before, report)
    return Merged(reports=list(by_device.values()))


class _Tagged(msgspec.Struct):
    schema: str = ""


def _join(first: Report, second: Report) -> Report:
    place = f"device {first.device}"
    differing = {
        name
        for name in {*first.versions} & {*second.versions}
        if first.versions[name] != second.versions[name]
    }
    if differing:
        fault = f"two reports with different versions of {', '.join(sorted(differing))}"
        raise UserError(place, fault, "Compare them with --baseline instead")
    cases = {(case.case, case.form): case for case in (*first.cases, *second.cases)}
    models = {model.model: model for model in (*first.models, *second.models)}
    return msgspec.structs.replace(
        first,
        versions={**first.versions, **second.versions},
        cases=sorted(cases.values(), key=lambda case: (case.operator, case.case, case.form)),
        models=list(models.values()),
    )

"""Reports as text: Markdown for a page of documentation, CSV for a spreadsheet."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping, Sequence

import msgspec

from edgert.coverage.record import Case, Model, Report
from edgert.coverage.report.cells import SIGNS, by_operator, cell, verdict

_LEGEND = "  ".join(f"{sign} {name}" for name, sign in SIGNS.items())
_COLUMNS = [field.encode_name for field in msgspec.structs.fields(Case)]


def markdown(reports: Sequence[Report]) -> str:
    """Return tables: devices, operators by device, models by device."""
    return "\n".join(_markdown_lines(reports)) + "\n"


def csv_text(reports: Sequence[Report]) -> str:
    """Return every case of every device, a line each, under one line of names."""
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(["device", "verdict", *_COLUMNS])
    for report in reports:
        for case in report.cases:
            values = msgspec.to_builtins(case)
            row = [report.device, verdict(case), *(values[name] for name in _COLUMNS)]
            writer.writerow([_harmless(value) for value in row])
    return file.getvalue()


def _markdown_lines(reports: Sequence[Report]) -> Iterator[str]:
    yield "# Operator coverage"
    yield ""
    yield from _table(("device", "evidence", "versions"), map(_device_row, reports))
    if any(report.cases for report in reports):
        yield from ("", "## Operators", "", f"Cases on the device and equal. {_LEGEND}", "")
        yield from _table(("operator", *(report.device for report in reports)), _operators(reports))
    if any(report.models for report in reports):
        yield from ("", "## Models", "", "Share of the nodes and multiply-accumulates there.", "")
        yield from _table(("model", *(report.device for report in reports)), _models(reports))


def _device_row(report: Report) -> tuple[str, ...]:
    found: list[Case | Model] = [*report.cases, *report.models]
    evidence = sorted({each.evidence for each in found})
    versions = ", ".join(f"{name} {version}" for name, version in report.versions.items())
    return report.device, ", ".join(evidence), versions


def _operators(reports: Sequence[Report]) -> Iterator[tuple[str, ...]]:
    groups = [by_operator(report.cases) for report in reports]
    for operator in sorted({name for group in groups for name in group}):
        yield operator, *(_cell_text(group.get(operator, [])) for group in groups)


def _cell_text(cases: Sequence[Case]) -> str:
    if not cases:
        return ""
    found = cell(cases)
    return f"{SIGNS[found.verdict]} {found.good}/{found.cases}"


def _models(reports: Sequence[Report]) -> Iterator[tuple[str, ...]]:
    found = [{model.model: model for model in report.models} for report in reports]
    for name in dict.fromkeys(name for models in found for name in models):
        yield name, *(_model_text(models, name) for models in found)


def _model_text(models: Mapping[str, Model], name: str) -> str:
    model = models.get(name)
    if model is None:
        return ""
    shares = [
        f"{share:.1%} of {what}"
        for share, what in ((model.share_of_nodes, "nodes"), (model.share_of_macs, "MACs"))
        if share is not None
    ]
    said = ", ".join(shares) or " ".join(model.reason.split())
    return f"{SIGNS[verdict(model)]} {said}".strip()


def _table(headers: Sequence[str], rows: Iterator[tuple[str, ...]]) -> Iterator[str]:
    yield f"| {' | '.join(headers)} |"
    yield f"|{'---|' * len(headers)}"
    for row in rows:
        yield f"| {' | '.join(text.replace('|', chr(92) + '|') for text in row)} |"


def _harmless(value: object) -> object:
    """Return a text that a spreadsheet does not take for a formula."""
    if isinstance(value, str) and value[:1] in "=+-@\t\r" and value[:1]:
        return f"'{value}"
    return value

"""A report as one HTML file: no network, no other file, the same colours printed.

The tables are drawn by ``page.js`` and ``page.models.js`` from data that keeps each text once, so
that the whole suite in all its forms stays small.
"""

from __future__ import annotations

import html
from collections.abc import Sequence
from importlib.resources import files
from typing import Any

import msgspec

from edgert.coverage.record import Case, Model, Report
from edgert.coverage.report.cells import MEANINGS, ORDER, SIGNS, verdict


def page(reports: Sequence[Report]) -> str:
    """Return the page."""
    title = "Operator coverage: " + ", ".join(report.device for report in reports)
    parts = {
        "@TITLE@": html.escape(title),
        "@STYLE@": _part("page.css"),
        "@SCRIPT@": _part("page.models.js") + _part("page.js"),
        "@DATA@": _embeddable(_data(reports)),
    }
    made = _part("page.html")
    for mark, text in parts.items():
        head, _, tail = made.partition(mark)
        made = head + text + tail
    return made


def _part(name: str) -> str:
    return files("edgert.coverage.report").joinpath(name).read_text(encoding="utf-8")


def _embeddable(data: Any) -> str:
    """Return JSON that no text in it can end: ``</script>`` is data, too."""
    return msgspec.json.encode(data).decode().replace("<", "\\u003c")


def _data(reports: Sequence[Report]) -> dict[str, Any]:
    words = _Words()
    return {
        "devices": [_device(report) for report in reports],
        "verdicts": ORDER,
        "signs": SIGNS,
        "meanings": MEANINGS,
        "cases": [
            _row(number, case, words)
            for number, report in enumerate(reports)
            for case in report.cases
        ],
        "models": [_model(report, model) for report in reports for model in report.models],
        "words": words.texts,
    }


class _Words:
    """Texts, each kept once."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self._numbers: dict[str, int] = {}

    def number(self, text: str) -> int:
        """Return the number of a text."""
        found = self._numbers.setdefault(text, len(self.texts))
        if found == len(self.texts):
            self.texts.append(text)
        return found


def _device(report: Report) -> dict[str, str]:
    found: list[Case | Model] = [*report.cases, *report.models]
    return {
        "device": report.device,
        "about": ", ".join(f"{name} {version}" for name, version in report.versions.items()),
        "evidence": ", ".join(sorted({each.evidence for each in found})) or "none",
    }


def _row(device: int, case: Case, words: _Words) -> list[Any]:
    """Return a case as page.js reads it."""
    texts = (case.dtype, case.form, case.placement, case.numerics, case.evidence, case.reason)
    return [
        device,
        words.number(case.case),
        words.number(case.operator),
        case.opset,
        *map(words.number, texts),
        ORDER.index(verdict(case)),
        case.max_error,
        case.mean_error,
        case.latency_ms,
    ]


def _model(report: Report, model: Model) -> dict[str, Any]:
    return {**msgspec.to_builtins(model), "device": report.device, "verdict": verdict(model)}

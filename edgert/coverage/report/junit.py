"""Reports as JUnit XML: what a vendor's continuous integration shows by itself."""

from __future__ import annotations

from collections.abc import Sequence
from xml.etree import ElementTree as ET

from edgert.coverage.record import Case, Model, Report
from edgert.coverage.report.cells import verdict

_SKIPPED = ("unknown", "listed")
_FAILED = ("differs", "refused", "partly", "cpu")


def junit(reports: Sequence[Report]) -> str:
    """Return one suite a device: what is proved passes, what is not proved is skipped."""
    root = ET.Element("testsuites", name="edgert coverage")
    for report in reports:
        root.append(_suite(report))
    ET.indent(root)
    return ET.tostring(root, encoding="unicode", xml_declaration=True) + "\n"


def _suite(report: Report) -> ET.Element:
    found: list[Case | Model] = [*report.cases, *report.models]
    verdicts = [verdict(each) for each in found]
    suite = ET.Element(
        "testsuite",
        name=report.device,
        tests=str(len(found)),
        failures=str(sum(each in _FAILED for each in verdicts)),
        errors=str(verdicts.count("failed")),
        skipped=str(sum(each in _SKIPPED for each in verdicts)),
    )
    properties = ET.SubElement(suite, "properties")
    for name, version in report.versions.items():
        ET.SubElement(properties, "property", name=name, value=version)
    suite.extend(_test(each) for each in found)
    return suite


def _test(found: Case | Model) -> ET.Element:
    name, group = (
        (f"{found.case}:{found.form}", found.operator)
        if isinstance(found, Case)
        else (found.model, "models")
    )
    test = ET.Element("testcase", classname=group, name=name)
    if found.latency_ms is not None:
        test.set("time", f"{found.latency_ms / 1e3:.6f}")
    what = verdict(found)
    said = f"{what}: placement {found.placement}, numerics {found.numerics} ({found.evidence})"
    if what in _SKIPPED:
        ET.SubElement(test, "skipped", message=_printable(said))
    elif what != "supported":
        kind = "error" if what == "failed" else "failure"
        ET.SubElement(test, kind, message=_printable(said)).text = _printable(found.reason)
    return test


def _printable(text: str) -> str:
    """Leave out what XML cannot carry: control characters, and halves of characters."""
    return (
        "".join(
            letter
            for letter in text
            if letter in "\t\n" or (letter >= " " and not 0xD800 <= ord(letter) <= 0xDFFF)  # noqa: PLR2004
        )
        .replace("\ufffe", "")
        .replace("\uffff", "")
    )

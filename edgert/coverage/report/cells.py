"""What a set of cases comes to, in one word that never says more than its evidence."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple

from edgert.coverage.record import Case, Evidence, Model

Verdict = Literal["supported", "listed", "partly", "cpu", "differs", "refused", "failed", "unknown"]

PROVEN: tuple[Evidence, ...] = ("hardware", "vendor-emulator", "vendor-compiler", "emulated")
_FAILURES = ("error", "crashed", "timed-out")
# The worst first: a cell of several cases shows where it is weakest, its numbers show the rest.
ORDER: tuple[Verdict, ...] = (
    "failed", "differs", "refused", "cpu", "partly", "unknown", "listed", "supported",
)  # fmt: skip

# A sign beside each colour: a page must be readable without colours.
SIGNS: dict[Verdict, str] = {
    "supported": "✓",
    "listed": "✓?",
    "partly": "◐",
    "cpu": "○",
    "differs": "≠",
    "refused": "✗",
    "failed": "!",
    "unknown": "?",
}

MEANINGS: dict[Verdict, str] = {
    "supported": "wholly on the device, proved; numbers equal, or a compiler that has none",
    "listed": "a list says the device takes it; nothing was run",
    "partly": "some of its nodes are on the device, the others on the CPU",
    "cpu": "it ran, but not on the device",
    "differs": "its numbers are outside the tolerance",
    "refused": "the device or runtime does not take it",
    "failed": "it ended with an error, crashed or took too long",
    "unknown": "nothing proves where it ran",
}


class Cell(NamedTuple):
    """A cell of the matrix.

    Attributes:
        verdict: Of its weakest case.
        good: Cases wholly on the device whose numbers are equal, or were not asked for.
        cases: All of them.
    """

    verdict: Verdict
    good: int
    cases: int


def verdict(found: Case | Model) -> Verdict:
    """Return what one case or model comes to.

    ``supported`` needs placement proven on the device, and numbers that are equal or that the
    evidence (a compiler) cannot give; a list alone is ``listed``.
    """
    if found.numerics in _FAILURES:
        return "failed"
    if found.placement == "rejected" or found.numerics == "unsupported":
        return "refused"
    if found.numerics == "differs":
        return "differs"
    if found.placement != "device":
        return found.placement if found.placement in ("partly", "cpu") else "unknown"
    if found.evidence == "static-list":
        return "listed"
    computed = found.numerics == "equal" or found.evidence == "vendor-compiler"
    return "supported" if found.evidence in PROVEN and computed else "unknown"


def said_placement(found: Case | Model) -> str:
    """Return the placement in words: what only a list says is not on the device, but listed."""
    if found.evidence != "static-list":
        return found.placement
    return {"device": "listed", "partly": "partly listed", "cpu": "not listed"}.get(
        found.placement, found.placement
    )


def cell(cases: Sequence[Case | Model]) -> Cell:
    """Return what several cases come to."""
    found = [verdict(case) for case in cases]
    good = sum(each in ("supported", "listed") for each in found)
    return Cell(min(found, key=ORDER.index, default="unknown"), good, len(found))


def by_operator(cases: Iterable[Case]) -> dict[str, list[Case]]:
    """Return the cases of each operator, operators in order of their names."""
    groups: dict[str, list[Case]] = {}
    for case in cases:
        groups.setdefault(case.operator, []).append(case)
    return {name: groups[name] for name in sorted(groups)}

"""Which profile a machine is given: by what the kernel shows, never by hope."""

from __future__ import annotations

import fnmatch
from collections.abc import Iterator, Mapping
from pathlib import Path

from edgert.profiles.machine import Machine
from edgert.profiles.spec import Match

# How the value that a rule was kept by is told.
_SAID = {
    "architecture": "{} CPU",
    "cpu": "CPU model '{}'",
    "compatible": "device tree '{}'",
    "board": "board '{}'",
    "pci": "{} on PCI",
    "usb": "{} on USB",
    "accelerators": "{}",
}
_PATTERNS = ("cpu", "compatible", "board")


def pick(
    matches: Mapping[Path, Match | None], machine: Machine
) -> tuple[Path | None, tuple[str, ...]]:
    """Return the file that matches by the most rules, and by what; of several the first.

    A profile without ``match`` (an emulated device) is never picked.
    """
    best: Path | None = None
    reasons: tuple[str, ...] = ()
    for file, match in matches.items():
        kept = kept_rules(match, machine)
        if len(kept) > len(reasons):
            best, reasons = file, kept
    return best, reasons


def kept_rules(match: Match | None, machine: Machine) -> tuple[str, ...]:
    """Return by what each rule is kept, for people; nothing where one of them is not."""
    kept = []
    for rule, values in match.rules().items() if match else ():
        by = next(_kept_by(rule, values, machine), "")
        if not by:
            return ()
        kept.append(_SAID[rule].format(by))
    return tuple(kept)


def _kept_by(rule: str, values: tuple[str, ...], machine: Machine) -> Iterator[str]:
    for has in sorted(machine.traits[rule]):
        if has in values or (
            rule in _PATTERNS and any(fnmatch.fnmatchcase(has, value) for value in values)
        ):
            yield has

"""Reads a device profile: every fault in one run, with line and column."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from edgert.backends.registry import parse_device
from edgert.device.kinds import KINDS
from edgert.errors import Fault, PipelineError, UserError
from edgert.pipeline.check import in_order
from edgert.pipeline.marks import Loc, Marks
from edgert.pipeline.near import choices
from edgert.pipeline.validate import Subject, validate
from edgert.pipeline.yamlfile import read_yaml
from edgert.profiles.spec import Accelerator, Match, ProfileSpec

_QUICK_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


@dataclass(frozen=True, slots=True)
class Profile:
    """A profile that was read, and its file."""

    spec: ProfileSpec
    path: Path

    @property
    def name(self) -> str:
        """Name of the profile."""
        return self.spec.name


def load_profile(path: Path) -> Profile:
    """Read a profile.

    Raises:
        PipelineError: It has faults; all of them are in it.
    """
    found = read_yaml(path, "profile")
    spec, flaws = validate(ProfileSpec, Subject(found.value, (), found.marks, "a profile"))
    known = {(fault.line, fault.column) for fault in found.faults}
    told = [flaw.told(found.marks) for flaw in flaws]
    faults = [*found.faults, *(each for each in told if (each.line, each.column) not in known)]
    faults += _faults_between(found.value, found.marks)
    if spec is not None:
        faults += _faults_of_name(spec, path, found.marks)
        faults += [*_faults_of_match(spec, found.marks), *_faults_of_devices(spec, found.marks)]
    if spec is None or faults:
        raise PipelineError(list(in_order(faults)))
    return Profile(spec, path)


def load_match(path: Path) -> Match | None:
    """Return how a profile of edgert's own is recognised.

    Those are known to have no fault, so that the marks which only faults need are left out: reading
    all of them with marks took a tenth as long as everything that ``edgert run`` imports.
    """
    rules = yaml.load(path.read_bytes(), _QUICK_LOADER).get("match")  # noqa: S506  a safe one
    return Match.model_validate(rules) if rules else None


def _faults_between(value: Any, marks: Marks) -> Iterator[Fault]:
    """Find sources that are named and not there, and those that nothing names.

    Reads the plain values, so that these are told beside whatever else is wrong.
    """
    sources = value.get("sources") if isinstance(value, dict) else None
    if not isinstance(sources, dict):
        return
    named = dict(_sources_named(value))
    for loc, source in named.items():
        if source not in sources:
            mend = choices(source, sources, "Sources")
            yield marks.fault(loc, f"there is no source '{source}'", mend)
    for name in sources:
        if name not in named.values():
            fault = f"no fact names the source '{name}'"
            yield marks.fault(("sources", name), fault, "Remove it", at_key=True)


def _sources_named(value: Any, loc: Loc = ()) -> Iterator[tuple[Loc, str]]:
    if isinstance(value, list):
        for index, item in enumerate(value):
            yield from _sources_named(item, (*loc, index))
    if not isinstance(value, dict):
        return
    for key, item in value.items():
        if key == "source" and isinstance(item, str) and loc[:1] != ("sources",):
            yield (*loc, key), item
        else:
            yield from _sources_named(item, (*loc, key))


def _faults_of_name(spec: ProfileSpec, path: Path, marks: Marks) -> Iterator[Fault]:
    if spec.name != path.stem:
        fault = f"'{spec.name}' is not what its file is called"
        yield marks.fault(("name",), fault, f"Rename the file to {spec.name}.yaml")


def _faults_of_match(spec: ProfileSpec, marks: Marks) -> Iterator[Fault]:
    if spec.match and spec.match.accelerators:
        yield from _unknown_kinds(spec.match.accelerators, ("match", "accelerators"), marks)
    if spec.cores:
        both = sorted(set(spec.cores.p_cores) & set(spec.cores.e_cores))
        if both:
            fault = f"core {both[0]} is in both classes"
            yield marks.fault(("cores", "e-cores"), fault, "Name each core once")


def _faults_of_devices(spec: ProfileSpec, marks: Marks) -> Iterator[Fault]:
    for name, each in spec.accelerators.items():
        loc: Loc = ("accelerators", name)
        if each.kinds:
            yield from _unknown_kinds(each.kinds, (*loc, "kinds"), marks)
        elif not _is_emulated(each):
            fault = "nothing tells how it is found, and it is not emulated"
            kinds = ", ".join(kind.name for kind in KINDS)
            yield marks.fault(loc, fault, f"Add 'kinds', of these: {kinds}", at_key=True)
        if each.device is not None:
            yield from _unknown_runtime(each.device, (*loc, "device"), marks, is_whole=True)
    if spec.defaults.device:
        for index, device in enumerate(spec.defaults.device.value):
            loc = ("defaults", "device", "value", index)
            yield from _unknown_runtime(device, loc, marks, is_whole=False)


def _is_emulated(each: Accelerator) -> bool:
    return (each.device or "").startswith("emulated:")


def _unknown_kinds(kinds: tuple[str, ...], loc: Loc, marks: Marks) -> Iterator[Fault]:
    known = [kind.name for kind in KINDS]
    for index, kind in enumerate(kinds):
        if kind not in known:
            mend = choices(kind, known, "Kinds")
            yield marks.fault((*loc, index), f"there is no kind of accelerator '{kind}'", mend)


def _unknown_runtime(text: str, loc: Loc, marks: Marks, *, is_whole: bool) -> Iterator[Fault]:
    try:
        runtime, _ = parse_device(text)
    except UserError as error:
        for each in error.faults:
            yield marks.fault(loc, f"{each.place}: {each.fault}", each.mend)
        return
    if is_whole and runtime is None:
        yield marks.fault(loc, f"'{text}' names no runtime", f"Write RUNTIME:{text}")

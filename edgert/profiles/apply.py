"""What a profile fills in where a pipeline file, or the kernel, leaves it open."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from edgert.errors import UserError
from edgert.options import keys_of
from edgert.pipeline.contract import Kinds
from edgert.pipeline.document import Document
from edgert.profiles.load import Profile
from edgert.profiles.machine import Machine
from edgert.profiles.spec import Defaults
from edgert.profiles.use import ProfileUse

# What a file may write where it leaves a key open.
_OPEN = {"requests": "auto"}
# What a stage has instead of a key; where it is written, the key is not open.
_INSTEAD = {"device": "balance"}


@dataclass(frozen=True, slots=True)
class Known:
    """What a plan takes from a profile.

    Attributes:
        profile: The profile; None where there is none.
        classes: Cores by class; None where the kernel is to be asked.
        classes_by: Who says so, for people; empty where it is the kernel.
        threads: Most threads of a stage without ``cores``; None for as many as there are.
    """

    profile: ProfileUse | None = None
    classes: Mapping[str, tuple[int, ...]] | None = None
    classes_by: str = ""
    threads: int | None = None


NOTHING_KNOWN = Known()


def apply(
    document: Document, kinds: Kinds, profile: Profile, why: str, machine: Machine
) -> tuple[Document, Known]:
    """Return a document with the defaults of a profile, and what else a plan takes from it.

    Args:
        document: The pipeline.
        kinds: The kinds of stage there are.
        profile: The profile.
        why: Why this one, for people.
        machine: The machine.
    """
    defaults = profile.spec.defaults
    filled, given = _fill_in(document, kinds, _values(defaults, document.spec.limits.in_flight))
    use = ProfileUse(profile.name, why, str(profile.path), given)
    classes, by = core_classes(profile, machine)
    threads = defaults.threads.value if defaults.threads else None
    return filled, Known(use, classes, by, threads)


def core_classes(profile: Profile, machine: Machine) -> tuple[Mapping[str, tuple[int, ...]], str]:
    """Return the cores by class, and who says so where it is not the kernel.

    A profile is believed only where the kernel says nothing and this machine has all of its cores.
    """
    cores = profile.spec.cores
    if machine.classes or cores is None:
        return machine.classes or {}, ""
    found = cores.by_class()
    if not machine.cores.issuperset(core for numbers in found.values() for core in numbers):
        return {}, ""
    return found, f"profile {profile.name}"


def _fill_in(
    document: Document, kinds: Kinds, values: Mapping[str, Any]
) -> tuple[Document, dict[str, dict[str, Any]]]:
    given: dict[str, dict[str, Any]] = {}
    for name, stage in document.spec.stages.items():
        options = _options(kinds, stage.kind)
        filled = {
            key: value
            for key, value in values.items()
            if key in options and _is_open(key, stage.settings)
        }
        if filled:
            given[name] = filled
    stages = {
        name: stage.model_copy(update=given.get(name, {}))
        for name, stage in document.spec.stages.items()
    }
    spec = document.spec.model_copy(update={"stages": stages})
    return replace(document, spec=spec), given


def _is_open(key: str, settings: Mapping[str, Any]) -> bool:
    if key in settings:
        return key in _OPEN and settings[key] == _OPEN[key]
    return _INSTEAD.get(key) not in settings


def _values(defaults: Defaults, in_flight: int) -> dict[str, Any]:
    device, requests = defaults.device, defaults.requests
    return {
        **({"device": list(device.value)} if device else {}),
        # More could never be busy.
        **({"requests": min(requests.value, in_flight)} if requests else {}),
    }


def _options(kinds: Kinds, kind: str) -> frozenset[str]:
    """Return the options of a kind; none where there is no such kind, which ``check`` tells."""
    try:
        return frozenset(keys_of(kinds.contract(kind).options))
    except UserError:
        return frozenset()

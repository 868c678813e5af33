"""Which accelerators of a profile are really on this machine."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from edgert.backends.survey import MissingRuntime
from edgert.inventory import Finding, Inventory
from edgert.profiles.load import Profile
from edgert.profiles.spec import Accelerator


class Presence(msgspec.Struct, frozen=True):
    """One accelerator of a profile, and what this machine has of it.

    Attributes:
        accelerator: Its short name in the profile.
        here: ``yes``, ``no``, ``unusable`` (seen by the kernel alone), ``unknown`` or ``emulated``.
        by: What it is called in a pipeline file; empty where it cannot be used.
        reason: Why it cannot be used; empty where it can.
        mend: What to do about it.
    """

    accelerator: str
    here: str
    by: tuple[str, ...] = ()
    reason: str = ""
    mend: str = ""


def presence(profile: Profile, found: Inventory) -> tuple[Presence, ...]:
    """Compare a profile with what was found on this machine."""
    return tuple(
        state
        for name, each in profile.spec.accelerators.items()
        for state in _states(name, each, found)
    )


def _states(name: str, each: Accelerator, found: Inventory) -> Iterator[Presence]:
    if not each.kinds:
        yield _emulated(name, each, found)
        return
    seen = [finding for finding in found.accelerators if finding.kind in each.kinds]
    yield from (_state(name, finding) for finding in seen)
    if not seen:
        yield Presence(name, "no", reason="the kernel shows none")


def _state(name: str, finding: Finding) -> Presence:
    here = {True: "yes", False: "unusable", None: "unknown"}[finding.usable]
    return Presence(name, here, finding.by, finding.reason, finding.mend)


def _emulated(name: str, each: Accelerator, found: Inventory) -> Presence:
    for runtime in found.runtimes:
        if isinstance(runtime, MissingRuntime):
            continue
        for device in runtime.devices:
            if device.emulated and f"{runtime.name}:{device.device}" == each.device:
                return Presence(name, "emulated", (each.device,))
    return Presence(name, "no", reason=f"edgert has no {each.device}")

"""From what was asked for to the profile of a run."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

from edgert.errors import Fault, PipelineError, UserError
from edgert.pipeline.contract import Kinds
from edgert.pipeline.document import Document
from edgert.profiles.apply import NOTHING_KNOWN, Known, apply
from edgert.profiles.find import is_shipped, known, locate
from edgert.profiles.load import Profile, load_match, load_profile
from edgert.profiles.machine import Machine, look
from edgert.profiles.match import pick

ASKED_FOR = "asked for"
NOTHING = "no profile matches this machine"


@dataclass(frozen=True, slots=True)
class Chosen:
    """The profile that was chosen; None where none matches.

    Attributes:
        profile: The profile.
        why: Why this one, for people.
        machine: The machine it was chosen for.
        warnings: What is wrong with profiles that were passed over.
    """

    profile: Profile | None
    why: str
    machine: Machine
    warnings: tuple[str, ...] = ()

    def apply(self, document: Document, kinds: Kinds) -> tuple[Document, Known]:
        """Return a document with the profile's defaults, and what else a plan takes from it."""
        if self.profile is None:
            return document, NOTHING_KNOWN
        return apply(document, kinds, self.profile, self.why, self.machine)


def choose(
    asked: str | None = None, root: Path = Path("/"), architecture: str | None = None
) -> Chosen:
    """Return the profile that was asked for by name or path, else the one that matches.

    Args:
        asked: A name or a path; None or empty for the one that matches.
        root: Where /dev, /proc and /sys are found.
        architecture: As ``uname -m`` has it; asked of the kernel where it is not given.

    Raises:
        UserError: There is none of that name.
        PipelineError: The one that was asked for has faults.
    """
    machine = look(root, architecture)
    if asked:
        return Chosen(load_profile(locate(asked)), ASKED_FOR, machine)
    own, warnings = _load(file for file in known().values() if not is_shipped(file))
    matches = {profile.path: profile.spec.match for profile in own}
    matches |= {file: load_match(file) for file in known().values() if is_shipped(file)}
    picked, reasons = pick(matches, machine)
    if picked is None:
        return Chosen(None, NOTHING, machine, warnings)
    return Chosen(load_profile(picked), f"picked: {', '.join(reasons)}", machine, warnings)


def choose_or_say(asked: str | None) -> tuple[Chosen, tuple[Fault, ...]]:
    """Return the profile as ``choose`` does; or what is wrong with the one asked for.

    Then one that matches stands in for it, so that the faults of a file are found, too.
    """
    try:
        return choose(asked), ()
    except UserError as error:
        return replace(choose(), warnings=()), tuple(error.faults)


def load_all() -> list[Profile]:
    """Return every profile that there is and can be read."""
    return _load(known().values())[0]


def _load(files: Iterable[Path]) -> tuple[list[Profile], tuple[str, ...]]:
    """Return profiles, and what is wrong with those that cannot be read.

    A run does not end for a profile that it may not need: its faults are told as warnings.
    """
    profiles: list[Profile] = []
    warnings: list[str] = []
    for file in files:
        try:
            profiles.append(load_profile(file))
        except PipelineError as error:
            warnings += map(str, error.faults)
    return profiles, tuple(warnings)

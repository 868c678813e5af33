"""How device profiles are shown: one with what this machine has of it, and the list of all."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from edgert.cli.render import show, show_json, table

if TYPE_CHECKING:
    from edgert.profiles.choose import Chosen
    from edgert.profiles.load import Profile
    from edgert.profiles.presence import Presence
    from edgert.profiles.spec import Accelerator, Defaults, ProfileSpec

SCHEMA = "edgert.profile/1"
LIST_SCHEMA = "edgert.profiles/1"
# A profile says what a device should do; that is the weakest evidence there is.
EVIDENCE = "static-list"
LIST_HEADERS = ("PROFILE", "FROM", "THIS MACHINE", "DESCRIPTION")
ACCELERATOR_HEADERS = ("ACCELERATOR", "HERE", "AS", "WHY NOT")


def show_profile(asked: str, *, as_json: bool) -> None:
    """Show a profile, the one that matches where ``asked`` is empty, against this machine.

    Raises:
        UserError: There is none of that name, or none matches.
        PipelineError: It has faults.
    """
    from edgert.cli.voice import say
    from edgert.errors import UserError
    from edgert.inventory import take
    from edgert.profiles.choose import choose
    from edgert.profiles.presence import presence

    chosen = choose(asked)
    for warning in chosen.warnings:
        say(f"warning: {warning}")
    if chosen.profile is None:
        raise UserError("--profile", chosen.why, "Write one: docs/device-profiles.md")
    found = presence(chosen.profile, take())
    if as_json:
        show_json(profile_json(chosen.profile, chosen.why, found))
    else:
        show("\n\n".join(profile_text(chosen.profile, chosen.why, found)))


def show_profiles(*, as_json: bool) -> None:
    """List every profile, and which of them matches this machine."""
    from edgert.cli.voice import say
    from edgert.profiles.choose import choose, load_all

    chosen = choose()
    for warning in chosen.warnings:
        say(f"warning: {warning}")
    rows = sorted(_row(profile, chosen) for profile in load_all())
    if as_json:
        keys = ("name", "from", "match", "description")
        data = [dict(zip(keys, row, strict=True)) for row in rows]
        show_json({"schema": LIST_SCHEMA, "picked_why": chosen.why, "profiles": data})
    else:
        show(table(LIST_HEADERS, rows))


def _row(profile: Profile, chosen: Chosen) -> tuple[str, ...]:
    from edgert.profiles.find import is_shipped
    from edgert.profiles.match import kept_rules

    where = "edgert" if is_shipped(profile.path) else str(profile.path)
    rule = profile.spec.match
    state = "never picked" if rule is None else "no"
    if rule is not None and kept_rules(rule, chosen.machine):
        is_picked = chosen.profile is not None and chosen.profile.path == profile.path
        state = "picked" if is_picked else "matches too"
    return profile.name, where, state, profile.spec.description


def profile_json(profile: Profile, why: str, found: tuple[Presence, ...]) -> dict[str, Any]:
    """Return a profile and what is here of it as plain JSON values, ``edgert.profile/1``."""
    import msgspec

    return {
        "schema": SCHEMA,
        "file": str(profile.path),
        "why": why,
        "evidence": EVIDENCE,
        "profile": profile.spec.model_dump(mode="json", by_alias=True, exclude_none=True),
        "here": msgspec.to_builtins(found),
    }


def profile_text(profile: Profile, why: str, found: tuple[Presence, ...]) -> Iterator[str]:
    """Yield the paragraphs of a profile."""
    spec = profile.spec
    yield "\n".join(f"{name:<8}  {said}" for name, said in _head(profile, why))
    for each in spec.accelerators.values():
        yield "\n".join([each.name, *_facts(each)])
    defaults = list(_defaults(spec.defaults))
    if defaults:
        yield "\n".join(["where a pipeline leaves it open", *defaults])
    yield "\n".join(["sources", *_sources(spec)])
    if found:
        yield "On this machine:\n" + table(ACCELERATOR_HEADERS, map(_presence_row, found))
    else:
        yield "It has no accelerators."


def _head(profile: Profile, why: str) -> Iterator[tuple[str, str]]:
    from edgert.device.cores import as_list

    spec = profile.spec
    yield "profile", f"{spec.name} ({why})"
    yield "of", spec.description
    yield "file", str(profile.path)
    if spec.match:
        for name, values in spec.match.rules().items():
            yield "match", f"{name}: {' or '.join(values)} [{spec.match.source}]"
    if spec.cores:
        for name, numbers in spec.cores.by_class().items():
            yield name, f"{as_list(numbers)} [{spec.cores.source}]"


def _facts(each: Accelerator) -> Iterator[str]:
    from edgert.device.memory import in_units

    yield f"  device          {each.device or 'no runtime of edgert runs on it'}"
    if each.precisions:
        yield f"  precisions      {' '.join(each.precisions.value)} [{each.precisions.source}]"
    if each.dynamic_shapes:
        said = "yes" if each.dynamic_shapes.value else "no"
        yield f"  dynamic shapes  {said} [{each.dynamic_shapes.source}]"
    if each.memory:
        size = in_units(each.memory.bytes)
        yield f"  memory          {size} {each.memory.what} [{each.memory.source}]"
    for format_, operators in each.operators.items():
        said = f"{len(operators.names)} of {format_} [{operators.source}], evidence {EVIDENCE}"
        yield f"  operators       {said}"


def _defaults(defaults: Defaults) -> Iterator[str]:
    if defaults.device:
        yield f"  device    {', '.join(defaults.device.value)}: {defaults.device.why}"
    for name in ("requests", "threads"):
        choice = getattr(defaults, name)
        if choice:
            yield f"  {name:<8}  {choice.value}: {choice.why}"


def _sources(spec: ProfileSpec) -> Iterator[str]:
    for name, source in spec.sources.items():
        yield f"  [{name}] {source.title}, {source.version}, read {source.as_of}: {source.url}"


def _presence_row(state: Presence) -> tuple[str, ...]:
    why = " ".join(f"{said.rstrip('.')}." for said in (state.reason, state.mend) if said)
    return state.accelerator, state.here, ", ".join(state.by), why

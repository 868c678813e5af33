"""Who is long in opening: the run begins when the last stage is open, and would wait in silence."""

from __future__ import annotations

import logging
from collections.abc import Iterable

from edgert.runtime import crew
from edgert.runtime.crew import Member
from edgert.wording import counted

log = logging.getLogger("edgert.supervisor")

AFTER_S = 10.0


class Openings:
    """Looks at workers that open their stages, and tells of each that takes long, once."""

    def __init__(self) -> None:
        self._since_s: dict[str, float] = {}
        self._told: set[str] = set()

    def step(self, members: Iterable[Member], now_s: float) -> None:
        """Look at every worker."""
        for member in members:
            start = member.identity
            if member.state != crew.STARTING or not member.is_alive or start in self._told:
                continue
            since_s = self._since_s.setdefault(start, now_s)
            if now_s - since_s >= AFTER_S:
                self._told.add(start)
                log.warning(
                    "worker '%s' has been opening %s for %.0f s%s",
                    member.plan.name,
                    _stages(member),
                    now_s - since_s,
                    _device(member, now_s),
                )


def _stages(member: Member) -> str:
    names = [f"'{name}'" for name in member.plan.stage_names]
    return f"stage {names[0]}" if len(names) == 1 else counted(len(names), "stage")


def _device(member: Member, now_s: float) -> str:
    trying = member.trying
    if trying is None or member.try_by_s < now_s:
        return ""
    return f" (now {trying.device}, which has {trying.within_s:g} s)"

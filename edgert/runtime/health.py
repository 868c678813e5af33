"""Whether a run makes progress: what a watchdog outside of it has to know.

The supervisor deals with workers that die or hang by itself (``watch.py``, ``revival.py``). This is
for what it cannot: a process that does not even die when it is killed, or that never gets ready.
A source that waits for its camera goes round and counts as well.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable
from pathlib import Path

from edgert.runtime import crew
from edgert.runtime.crew import Member

STILL_WITHIN_S = 120.0  # compiling a model keeps a core busy; what waits for a device does not
_KILLED_WITHIN_S = 2.0


def cpu_ticks(pid: int) -> int:
    """Return the CPU time of a process and all its threads; 0 where it is gone."""
    with contextlib.suppress(OSError):
        after_name = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return int(after_name[11]) + int(after_name[12])
    return 0


class Health:
    """Remembers when each worker was last seen to come forward.

    Args:
        read_cpu: CPU time of a process.
    """

    def __init__(self, read_cpu: Callable[[int], int] = cpu_ticks) -> None:
        self._read_cpu = read_cpu
        self._cpu: dict[str, tuple[int, float]] = {}
        self._hung_s: dict[str, float] = {}

    def why_stuck(self, members: Iterable[Member], now_s: float) -> str:
        """Return what keeps a run from going on; empty while everything required progresses."""
        said = (self._why(member, now_s) for member in members if member.is_alive)
        return next(filter(None, said), "")

    def _why(self, member: Member, now_s: float) -> str:
        if member.hung:
            return self._why_hung(member, now_s)
        self._hung_s.pop(member.plan.name, None)
        is_given_time = member.try_by_s > now_s  # by ``open_timeout_s``, for the device it opens
        if member.state == crew.STARTING and not is_given_time:
            return self._why_still(member, now_s)
        self._cpu.pop(member.plan.name, None)
        return ""

    def _why_hung(self, member: Member, now_s: float) -> str:
        name = member.plan.name
        since_s = now_s - self._hung_s.setdefault(name, now_s)
        return f"worker '{name}' hangs and cannot be killed" if since_s > _KILLED_WITHIN_S else ""

    def _why_still(self, member: Member, now_s: float) -> str:
        name = member.plan.name
        ticks = self._read_cpu(member.pid)
        before, since_s = self._cpu.get(name, (-1, now_s))
        if ticks != before:
            self._cpu[name] = (ticks, now_s)
            return ""
        if now_s - since_s <= STILL_WITHIN_S:
            return ""
        return (
            f"worker '{name}' has been starting for {now_s - since_s:.0f} s without doing a thing"
        )

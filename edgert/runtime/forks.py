"""What a process that is forked during a run has of it: nothing.

Else the zygote would not hear that the supervisor is gone while that process lives, and the run's
name would stay taken.
"""

from __future__ import annotations

import os
from weakref import WeakSet

from edgert.runtime import wiring
from edgert.runtime.supervisor import Supervisor

_AT_WORK: WeakSet[Supervisor] = WeakSet()


def keep_from_children(supervisor: Supervisor) -> None:
    """Let what is forked from now on hold nothing of a run."""
    _AT_WORK.add(supervisor)


def forget(supervisor: Supervisor) -> None:
    """Forget a run that has given everything back."""
    _AT_WORK.discard(supervisor)


def _leave_to_parent() -> None:
    while _AT_WORK:
        supervisor = _AT_WORK.pop()
        supervisor.team.spawner.leave_to_parent()
        supervisor.folder.leave_to_parent()
        wiring.close_all(supervisor.fds)


os.register_at_fork(after_in_child=_leave_to_parent)

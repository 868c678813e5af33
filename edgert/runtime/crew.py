"""The workers of a run as the supervisor knows them: pid, state, and how each one ended."""

from __future__ import annotations

import signal
from dataclasses import dataclass, field
from typing import Any

from edgert.control.messages import Failed, SaidFault
from edgert.errors import (
    EXIT_BUG,
    EXIT_USER,
    DeviceError,
    EdgertError,
    Fault,
    MediaError,
    ModelError,
    ResourceError,
    RunError,
    StageError,
    UserError,
    WorkerDiedError,
)
from edgert.plan.structs import WorkerPlan

STARTING, READY, FINISHED, FAILED = "starting", "ready", "finished", "failed"
ENDED = frozenset({FINISHED, FAILED})


class InternalError(RunError):
    """A worker met a bug of ours."""

    exit_code = EXIT_BUG


@dataclass(slots=True)
class Member:
    """One worker of the run.

    Attributes:
        plan: Its part of the plan.
        pid: Its process, 0 until it is forked.
        state: ``starting``, ``ready``, ``finished`` or ``failed``.
        exited: Whether the process is gone.
        reports: What its stages reported while opening.
    """

    plan: WorkerPlan
    pid: int = 0
    state: str = STARTING
    exited: bool = False
    reports: dict[str, dict[str, Any]] = field(default_factory=dict)


_BY_NAME = {
    kind.__name__: kind for kind in (DeviceError, MediaError, ModelError, ResourceError, StageError)
}
_BY_EXIT_CODE: dict[int, type[EdgertError]] = {EXIT_USER: UserError, EXIT_BUG: InternalError}


def error_of(faults: tuple[SaidFault, ...], exit_code: int, name: str = "") -> EdgertError:
    """Return an error with the faults that a worker told: of the same class, or the same code."""
    first = faults[0]
    kind = _BY_NAME.get(name) or _BY_EXIT_CODE.get(exit_code, RunError)
    error = kind(first.place, first.fault, first.mend)
    error.faults = tuple(Fault(said.place, said.fault, said.mend) for said in faults)
    return error


def error_of_failure(message: Failed) -> EdgertError:
    """Return the error of a worker that told why it failed."""
    return error_of(message.faults, message.exit_code, message.error)


def error_of_death(member: Member, status: int) -> EdgertError:
    """Return the error of a worker that ended without a word."""
    stages = ", ".join(stage.name for stage in member.plan.stages)
    return WorkerDiedError(
        f"worker '{member.plan.name}' (process {member.pid})",
        f"{describe_status(status)} while it ran stage {stages}",
        "See the lines above; frames that it had are counted as lost",
    )


def describe_status(status: int) -> str:
    """Return an exit status in words: a negative one is a signal."""
    if status >= 0:
        return f"ended with code {status}"
    try:
        name = signal.Signals(-status).name
    except ValueError:
        name = f"signal {-status}"
    hint = {
        "SIGKILL": ", by somebody or for want of memory,",
        "SIGSEGV": " (a native library crashed)",
        "SIGABRT": " (a native library gave up)",
        "SIGBUS": " (shared memory was not there)",
    }.get(name, "")
    return f"was ended by {name}{hint}"

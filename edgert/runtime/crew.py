"""The workers of a run as the supervisor knows them: pid, state, and how each one ended."""

from __future__ import annotations

import contextlib
import itertools
import os
import signal
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from edgert.control.messages import Failed, Log, SaidFault, Trying
from edgert.errors import (
    EXIT_BUG,
    EXIT_RUN_FAILED,
    EXIT_USER,
    DeviceError,
    DeviceLostError,
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
from edgert.plan.structs import TrialOrder, WorkerPlan
from edgert.wording import counted

STARTING, READY, WAITING, FINISHED, FAILED = "starting", "ready", "waiting", "finished", "failed"
AWAY = "away"
ENDED = frozenset({FINISHED, FAILED})


class InternalError(RunError):
    """A worker met a bug of ours."""

    exit_code = EXIT_BUG


_SERIALS = itertools.count(1)


@dataclass(slots=True)
class Member:
    """One worker of the run.

    Attributes:
        plan: Its part of the plan.
        pid: Its process, 0 until it is forked.
        state: ``starting``, ``ready``, ``waiting`` (for its restart), ``away`` (for long: its
            budget is used up, and others of its stage do its work), ``finished`` or ``failed``.
        exited: Whether the process is gone.
        reports: What its stages reported while opening.
        failure: What it said before it exited; None where it died without a word.
        was_ready: Whether it could boot: one that never did is not started again.
        hung: Why it was killed, where it hung.
        stack_by_s: When a hung worker's stack is read, and it is killed; 0 before.
        ready_s: When it became ready the last time.
        restarts_s: When it was started again.
        absences: How often it went away without having been well for long in between.
        why_down: Why it died; empty where it did not, or has been ready since.
        due_s: When it is to be started again.
        set_aside: Stage, stream and sequence of frames that are not tried again.
        trying: The device that it is opening.
        try_by_s: Until when that may take.
        refused: Stage -> device -> why it refused.
        lost: Stage -> device -> how it failed while it ran.
        serial: Number of its process among all of this supervisor.
        planned: How often it was started again because somebody asked for it.
        leave_by_s: Until when it has to have left, where it was told to; 0 where it was not.
        has_left: Whether it has said so.
        next_plan: What takes its place when it has left; None for the same.
        fallback: The plan to go back to if its own does not start.
        is_heir: Whether it was opened beside the process whose place it takes.
        is_warm: Whether it has opened its stages there.
        trials: Its stages that are tried before it takes over.
    """

    plan: WorkerPlan
    pid: int = 0
    state: str = STARTING
    exited: bool = False
    reports: dict[str, dict[str, Any]] = field(default_factory=dict)
    failure: Failed | None = None
    was_ready: bool = False
    hung: str = ""
    stack_by_s: float = 0.0
    ready_s: float = 0.0
    restarts_s: list[float] = field(default_factory=list)
    absences: int = 0
    why_down: str = ""
    due_s: float = 0.0
    set_aside: list[tuple[str, int, int]] = field(default_factory=list)
    trying: Trying | None = None
    try_by_s: float = 0.0
    refused: dict[str, dict[str, str]] = field(default_factory=dict)
    lost: dict[str, dict[str, str]] = field(default_factory=dict)
    serial: int = field(default_factory=_SERIALS.__next__)
    planned: int = 0
    leave_by_s: float = 0.0
    has_left: bool = False
    next_plan: WorkerPlan | None = None
    fallback: WorkerPlan | None = None
    is_heir: bool = False
    is_warm: bool = False
    trials: tuple[TrialOrder, ...] = ()

    @property
    def restarts(self) -> int:
        """How often it was started again."""
        return len(self.restarts_s) + self.planned

    @property
    def identity(self) -> str:
        """Its name on the control channel: one for each start."""
        return f"{self.plan.name}/{self.serial}"

    @property
    def has_said_all(self) -> bool:
        """Whether it has told how it ended."""
        return self.failure is not None or self.has_left or self.state in ENDED

    @property
    def is_alive(self) -> bool:
        """Whether there is a process."""
        return bool(self.pid) and not self.exited

    def tries(self, message: Trying, now_s: float) -> None:
        """Note which device it opens now, and what has refused before it."""
        self.trying = message
        self.try_by_s = now_s + message.within_s
        self.refused.setdefault(message.stage, {}).update(message.refused)

    def is_ready(self, reports: dict[str, dict[str, Any]], now_s: float) -> None:
        """Note that it has opened its stages."""
        self.state = READY
        self.ready_s = now_s
        self.why_down = ""
        self.was_ready = True
        self.reports = reports
        self.trying = None
        self.try_by_s = 0.0
        self.fallback = None

    def forgive(self, now_s: float) -> None:
        """Forget that it was away where it has been well since for as long as its window."""
        if self.state == READY and now_s - self.ready_s > self.plan.restart.window_s:
            self.absences = 0

    def heir(self, plan: WorkerPlan, trials: tuple[TrialOrder, ...]) -> Member:
        """Return who is opened beside it to take its place with another plan."""
        heir = Member(plan, is_heir=True, set_aside=self.set_aside, trials=trials)
        heir.inherit(self)
        return heir

    def inherit(self, member: Member) -> None:
        """Take over what is counted of a worker, whatever process it is."""
        self.restarts_s = member.restarts_s
        self.planned = member.planned + 1
        self.set_aside = member.set_aside
        self.was_ready = member.was_ready
        self.fallback = member.plan

    def log_fields(self, message: Log) -> dict[str, str | int]:
        """Return what is known of a record beside its text: worker, stage, and what it brought."""
        stage = message.logger.removeprefix("edgert.")
        known = {"stage": stage} if stage in self.plan.stage_names else {}
        return {"worker": message.worker, **known, **message.fields}

    def begin_again(self, now_s: float) -> None:
        """Note that it is started again; what was asked for is not counted against its budget."""
        if self.leave_by_s or self.fallback:
            self.planned += 1
        else:
            self.restarts_s.append(now_s)
        self.serial = next(_SERIALS)
        self.leave_by_s = 0.0
        self.has_left = self.is_heir = self.is_warm = False
        self.state = STARTING
        self.exited = False
        self.pid = 0
        self.failure = None
        self.hung = ""
        self.stack_by_s = 0.0
        self.trying = None
        self.try_by_s = 0.0


def dues(members: Iterable[Member]) -> list[float]:
    """Return the times at which something of a worker is due."""
    waiting = [member.due_s for member in members if member.state in (WAITING, AWAY)]
    others = (
        due_s
        for member in members
        for due_s in (member.stack_by_s, member.try_by_s, member.leave_by_s)
    )
    return [*waiting, *filter(None, others)]


def send_signal(member: Member, number: int) -> None:
    """Send a signal to a member's process."""
    with contextlib.suppress(ProcessLookupError):  # reaped, and not heard of yet
        os.kill(member.pid, number)


_BY_NAME = {
    kind.__name__: kind
    for kind in (
        DeviceError,
        DeviceLostError,
        MediaError,
        ModelError,
        ResourceError,
        StageError,
    )
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


def error_of_death(member: Member, status: int, *, out_of_memory: bool = False) -> EdgertError:
    """Return the error of a worker that ended without a word."""
    stages = ", ".join(stage.name for stage in member.plan.stages)
    how = describe_status(status, out_of_memory=out_of_memory)
    if member.hung:
        how = f"was killed because it hung ({member.hung})"
    had_frames = not member.is_heir or member.state == READY
    what = "frames that it had are counted as lost" if had_frames else "it had no frame of the run"
    return WorkerDiedError(
        f"worker '{member.plan.name}' (process {member.pid})",
        f"{how} while it ran stage {stages}",
        f"See the lines above; {what}",
    )


def given_up(member: Member, error: EdgertError) -> EdgertError:
    """Return the error of a worker that is not started again; where its budget is used up, so."""
    is_the_users = isinstance(error, UserError) and member.state == READY
    if not member.restarts or not member.was_ready or is_the_users:
        return error
    first = error.faults[0]
    budget = member.plan.restart.budget
    times = counted(member.restarts, "time")
    fault = f"{first.fault}; it was started again {times}, allowed are {budget}"
    kind = type(error) if error.exit_code == EXIT_RUN_FAILED else RunError
    return kind(first.place, fault, first.mend or "See the lines above")


def describe_status(status: int, *, out_of_memory: bool = False) -> str:
    """Return an exit status in words: a negative one is a signal."""
    if status == -signal.SIGKILL and out_of_memory:
        return "was killed by the kernel for want of memory"
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

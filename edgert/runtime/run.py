"""Runs a plan from start to summary: the supervisor's loop with signals, progress and accounts."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from edgert.errors import EXIT_BUG, EXIT_DONE, EdgertError, RunError, UserError
from edgert.plan.structs import Plan
from edgert.runtime import forks
from edgert.runtime.accounts import close_accounts, total_counts
from edgert.runtime.commands import Commands
from edgert.runtime.health import Health
from edgert.runtime.memory import pss_by_process
from edgert.runtime.order import RunOptions as RunOptions  # noqa: PLC0414  exported
from edgert.runtime.reload import Replan
from edgert.runtime.signals import SignalWatch
from edgert.runtime.sources import SourceState, live_sources
from edgert.runtime.summary import Summary, rate, summarise
from edgert.runtime.supervisor import Supervisor
from edgert.runtime.throttle import ThrottleWatch
from edgert.stages.live import ONLINE
from edgert.wording import counted

log = logging.getLogger("edgert.run")

_TICK_S = 0.25
_BUSY_TICK_S = 0.02  # while something is under way that was asked for
_MEASURE_MEMORY_AFTER_S = 1.0


@dataclass(frozen=True, slots=True)
class Progress:
    """Where a run stands, for whoever shows it.

    Attributes:
        phase: ``starting``, ``running`` or ``draining``.
        frames: Read, processed, dropped, lost so far.
        fps: Frames/s since the first result.
        elapsed_s: Seconds since START.
        restarts: How often workers were started again.
        stuck: What keeps it from going on, where that is beyond the supervisor's help.
        sources: Each live source and how it is.
        reloads: How often a reload has begun.
        said: What became of what was last asked for; empty while it is under way.
    """

    phase: str
    frames: dict[str, int]
    fps: float
    elapsed_s: float
    restarts: int = 0
    stuck: str = ""
    sources: dict[str, SourceState] = field(default_factory=dict)
    reloads: int = 0
    said: str = ""

    def away(self) -> list[str]:
        """Return each live source that is not online and how it is: ``front offline``."""
        return [f"{name} {at.state}" for name, at in self.sources.items() if at.state != ONLINE]


OnTick = Callable[[Progress], None]


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a run ended.

    Attributes:
        summary: The summary.
        errors: What went wrong, the cause first; empty for a good run.
        exit_code: Of the process that ran it.
    """

    summary: Summary
    errors: tuple[EdgertError, ...]
    exit_code: int


class Run:
    """A run that is stepped by its owner: ``start``, ``step`` until it has ended, ``finish``."""

    def __init__(self, plan: Plan, options: RunOptions, replan: Replan | None = None) -> None:
        self._plan = plan
        self._owner = os.getpid()
        self._supervisor = Supervisor(plan, options)
        self._throttling = ThrottleWatch()
        self._pss: dict[str, float] = {}
        self._was_told = False
        self._health = Health()
        try:
            self._commands = Commands(self._supervisor, replan)
        except BaseException:
            self._supervisor.close()
            raise
        self.watch = self._supervisor.watch
        forks.keep_from_children(self._supervisor)

    @property
    def is_ours(self) -> bool:
        """Whether this is the process that began it: one forked from that has nothing of it."""
        return os.getpid() == self._owner

    def require_ours(self) -> None:
        """Refuse a process that was forked from the one that began it.

        Raises:
            UserError: This is one.
        """
        if not self.is_ours:
            fault = f"is run by process {self._owner}, of which this one is a fork"
            mend = "Go on there, or begin a run here"
            raise UserError(f"pipeline '{self._plan.name}'", fault, mend)

    @property
    def is_running(self) -> bool:
        """Whether any worker has not ended."""
        return self._supervisor.team.is_running

    def start(self) -> None:
        """Start every worker."""
        self._supervisor.start()

    def step(self, timeout_s: float) -> None:
        """Let the supervisor deal with what happens within ``timeout_s``."""
        self.require_ours()
        has_more = self._commands.step()
        if self._commands.is_busy:
            timeout_s = min(timeout_s, _BUSY_TICK_S)
        self._supervisor.step(0.0 if has_more else timeout_s)
        self._throttling.look_when_due()
        started = self._supervisor.started_s
        if started and not self._pss and time.monotonic() - started > _MEASURE_MEMORY_AFTER_S:
            self.measure_memory()

    def stop(self) -> None:
        """Let every stream end; a second call kills."""
        if self._was_told:
            self._supervisor.kill("was told a second time to stop")
        self._was_told = True
        self._supervisor.stop()

    def reload(self) -> None:
        """Read the file again as soon as nothing else is under way."""
        self._commands.reload()

    def progress(self) -> Progress:
        """Return where the run stands."""
        supervisor = self._supervisor
        members = supervisor.members.values()
        started = supervisor.started_s
        phase = supervisor.phase
        return Progress(
            phase,
            total_counts(supervisor.ledger, self._plan.streams),
            rate(self._plan, supervisor.ledger),
            time.monotonic() - started if started else 0.0,
            sum(member.restarts for member in members),
            self._health.why_stuck(members, time.monotonic()),
            live_sources(supervisor.ledger, self._plan.streams),
            self._commands.reloads,
            "" if self._commands.is_busy else self._commands.said,
        )

    def finish(self) -> Outcome:
        """Close the accounts and give everything back; call when nothing runs any more."""
        supervisor = self._supervisor
        wrong = close_accounts(self._plan, supervisor.ledger, supervisor.members, supervisor.fds)
        errors = list(supervisor.input_faults)
        if supervisor.error is not None:
            errors.insert(0, supervisor.error)
        frames = total_counts(supervisor.ledger, self._plan.streams)
        if not errors and frames["lost"] and not frames["processed"]:
            fault = f"none of {counted(frames['read'], 'frame')} could be processed"
            errors.append(RunError(f"pipeline '{self._plan.name}'", fault, "See the lines above"))
        duration_s = supervisor.ended_s - supervisor.started_s if supervisor.started_s else 0.0
        said = str(errors[0]) if errors else ""
        summary = summarise(
            self._plan,
            supervisor.ledger,
            supervisor.members,
            duration_s,
            self._pss,
            said,
            self._throttling.totals(),
        )
        self._close()
        code = errors[0].exit_code if errors else EXIT_DONE
        if wrong:
            errors.append(RunError("accounts", f"do not add up: {'; '.join(wrong)}"))
            code = code or EXIT_BUG
        return Outcome(summary, tuple(errors), code)

    def abandon(self) -> None:
        """Give everything back, running workers die: for an error in the supervisor itself."""
        if self.is_ours:
            self._close()

    def _close(self) -> None:
        self._commands.close()
        forks.forget(self._supervisor)
        self._supervisor.close()

    def measure_memory(self) -> None:
        """Measure the PSS of every process of the run."""
        names = [("supervisor", os.getpid()), *self._supervisor.team.processes()]
        self._pss = pss_by_process(names)


def run_plan(
    plan: Plan,
    options: RunOptions,
    on_tick: OnTick | None = None,
    replan: Replan | None = None,
) -> Outcome:
    """Run a plan to its end; SIGTERM and SIGINT drain it, a second one kills; SIGHUP reloads.

    Args:
        plan: What to run.
        options: How.
        on_tick: Called four times a second with the progress; None polls less often.
        replan: Makes a plan of the file as it stands; None where there is no file.

    Returns:
        How it ended; errors of the run are in it, not raised.

    Raises:
        BusyError: A run of that name is going on.
        ResourceError: The rings cannot be reserved.
    """
    with SignalWatch().watching() as signals:
        run = Run(plan, options, replan)
        run.watch(signals.fd)
        try:
            run.start()
            heard = 0
            while run.is_running:
                run.step(_TICK_S if on_tick else 1.0)
                for _ in range(signals.hear() - heard):
                    heard += 1
                    run.stop()
                if signals.take_reload():
                    run.reload()
                if on_tick:
                    on_tick(run.progress())
        except BaseException:
            run.abandon()
            raise
        return run.finish()

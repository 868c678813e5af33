"""The supervisor: owns every segment and fd of a run, starts its workers, and sees it end well.

A loop of verbs over one poll. It never touches a pixel and never imports a vendor's library.

    start -> all READY -> START -> running -> streams end, or Stop -> drained -> ended
                             a worker dies: it is started again and goes on (``revival.py``)
                             too often:     Stop to all, a stand-in loses its frames
"""

from __future__ import annotations

import logging
import select
import time
from collections.abc import Callable, Mapping
from typing import ClassVar

from edgert.control.messages import (
    Compared,
    Failed,
    Finished,
    Go,
    InputFault,
    Left,
    Lent,
    Log,
    Ready,
    Start,
    Stop,
    ToSupervisor,
    Tried,
    Trying,
    Warm,
)
from edgert.errors import EdgertError, RunError, WorkerDiedError
from edgert.plan.structs import Plan
from edgert.runtime import crew, watch, wiring
from edgert.runtime.absences import Absences
from edgert.runtime.crew import Member
from edgert.runtime.ending import Ending
from edgert.runtime.folder import RunFolder
from edgert.runtime.order import RunOptions
from edgert.runtime.revival import Revival
from edgert.runtime.succession import Succession
from edgert.runtime.team import Team
from edgert.runtime.turns import TurnKeeper
from edgert.runtime.zygote import Exited, FromZygote, Spawned
from edgert.transport.ledger import Ledger
from edgert.transport.segment import map_segment

log = logging.getLogger("edgert.supervisor")

_LAST_WORDS_WITHIN_S = 5.0  # on a machine that is short of CPU, behind a flood of log lines
_SEND_AGAIN_AFTER_S = 0.01
_LOOK_FOR_HUNG_EVERY_S = 0.25


class Supervisor:
    """One run of one plan.

    Args:
        plan: What to run.
        options: How.
    """

    def __init__(self, plan: Plan, options: RunOptions) -> None:
        self.plan = plan
        self.error: EdgertError | None = None
        self.input_faults: list[EdgertError] = []
        self.started_s = 0.0
        self.ended_s = 0.0
        self._options = options
        self._ending = Ending(options)
        self._killed = False
        self.folder = RunFolder(plan.name)
        try:
            self.fds = wiring.create_all(plan)
        except BaseException:
            self.folder.release()
            raise
        self.ledger = Ledger(map_segment(self.fds["ledger"], writable=True), plan.ledger)
        self._turns = TurnKeeper(plan.turns, self.ledger, self.fds)
        self._revival = Revival(plan, self.ledger, self.fds)
        self.team = Team(plan, options, self.folder, self.fds)
        self.members = self.team.members
        self.succession = Succession(self.team, options.stop_timeout_s)
        self._poller = poller = select.poll()
        self._absences = Absences(plan, self.team, self.ledger, self.fds, poller)
        for fd in (self.team.channel.fd, self.team.spawner.fd):
            self._poller.register(fd, select.POLLIN)

    @property
    def phase(self) -> str:
        """Where the run stands: ``starting``, ``running`` or ``draining``."""
        if self._ending.has_begun:
            return "draining"
        return "running" if self.started_s else "starting"

    def watch(self, fd: int) -> None:
        """Let ``step`` return when ``fd`` is readable, too."""
        self._poller.register(fd, select.POLLIN)

    def start(self) -> None:
        """Have every worker forked; they say READY when they are."""
        for member in self.members.values():
            self.team.spawn(member)

    def step(self, timeout_s: float) -> None:
        """Wait for something to happen, at most ``timeout_s``, and deal with it."""
        self._hear_workers()
        ready = self._poller.poll(max(0.0, self._due_within(timeout_s)) * 1000)
        if any(fd == self.team.spawner.fd for fd, _ in ready):
            self._hear_zygote()
        self._hear_workers()
        self._absences.step()
        self._revival.kill_hung(self.team.everybody())
        self.succession.kill_late()
        self._absences.end_due(time.monotonic(), is_draining=self._ending.has_begun)
        self.team.start_due()
        self._stop_when_due()
        self._kill_when_late()

    def stop(self) -> None:
        """Let every stream end and everything drain."""
        if not self._ending.has_begun:
            self._ending.begin()
            self.succession.cancel()
            self.team.tell_all(Stop())

    def kill(self, why: str) -> None:
        """Kill every worker that is left; what they had is counted as lost."""
        if not self._killed:
            self._killed = True
            late = [m.plan.name for m in self.members.values() if m.state not in crew.ENDED]
            if self.error is None and late:
                place = f"pipeline '{self.plan.name}'"
                self.error = RunError(place, f"{why}; killed: {', '.join(late)}")
        self.team.kill()

    def close(self) -> None:
        """Give everything back."""
        self._absences.close()
        self.team.close()
        wiring.close_all(self.fds)
        self.folder.release()

    def _due_within(self, timeout_s: float) -> float:
        """Return how long a poll may last before something of ours is due."""
        now, timeout_s = time.monotonic(), min(timeout_s, _LOOK_FOR_HUNG_EVERY_S)
        if self._absences.has_unsent:
            timeout_s = min(timeout_s, _SEND_AGAIN_AFTER_S)
        for due_s in crew.dues(self.team.everybody()):
            timeout_s = min(timeout_s, max(0.0, due_s - now))
        return self._ending.within(timeout_s, self.started_s)

    def _hear_zygote(self) -> None:
        try:
            message = self.team.spawner.receive()
        except WorkerDiedError as error:
            self._on_zygote_death(error)
        else:
            self._on_fork_news(message)
        if not self.team.is_running:
            self.ended_s = time.monotonic()

    def _on_fork_news(self, message: FromZygote) -> None:
        member = self.team.with_identity(message.identity)
        if member is None:
            return
        if isinstance(message, Spawned):
            member.pid = message.pid
            log.debug("worker '%s' is process %d", member.plan.name, message.pid)
        elif isinstance(message, Exited):
            self._hear_last_words(member, message.status)
            member.exited = True
            if member in self.team.heirs.values():
                error = self._revival.why_dead(member, message.status)
                self.succession.heir_has_ended(member, error)
            else:
                self._on_exit(member, message.status)

    def _on_exit(self, member: Member, status: int) -> None:
        self._turns.worker_gone(member.plan.stages)
        if member.state in crew.ENDED or self._killed or not self._was_to_leave(member):
            if member.state not in crew.ENDED:
                self._on_death(member, status)
            self.succession.nobody_left(member)
            watch.forget(member.plan, self.ledger)

    def _was_to_leave(self, member: Member) -> bool:
        if member.leave_by_s:
            watch.forget(member.plan, self.ledger)  # before the next one notes anything
        return self.succession.has_ended(member)

    def _hear_last_words(self, member: Member, status: int) -> None:
        """What a worker said before it exited may arrive after the news that it has."""
        self._hear_workers()
        deadline_s = time.monotonic() + _LAST_WORDS_WITHIN_S
        while status >= 0 and not member.has_said_all and time.monotonic() < deadline_s:
            self.team.channel.wait_message(0.1)
            self._hear_workers()

    def _on_zygote_death(self, error: WorkerDiedError) -> None:
        """Every worker dies with the zygote; nobody is left to drain."""
        self._poller.unregister(self.team.spawner.fd)
        self._hear_workers()
        if self.error is None:
            self.error = error
        self._killed = True
        for member in self.members.values():
            member.exited = True
            if member.state != crew.FINISHED:
                member.state = crew.FAILED

    def _hear_workers(self) -> None:
        while (heard := self.team.hear()) is not None:
            member, message = heard
            self._ON_MESSAGE[type(message)](self, member, message)

    def _on_ready(self, member: Member, message: Ready) -> None:
        member.is_ready(message.reports, time.monotonic())
        self._absences.review()
        if self._ending.has_begun:
            self.team.tell(member, Stop())  # it was not there yet when all were told
        elif self.started_s:
            self.team.tell(member, Start())
        elif all(other.state == crew.READY for other in self.members.values()):
            self.started_s = time.monotonic()
            self.team.tell_all(Start())

    def _on_succession(self, member: Member, message: ToSupervisor) -> None:
        self.succession.hear(member, message)

    def _on_trying(self, member: Member, message: Trying) -> None:
        member.tries(message, time.monotonic())
        self.team.tell(member, Go())

    def _on_log(self, member: Member, message: Log) -> None:
        fields = member.log_fields(message)
        logging.getLogger(message.logger).log(message.level, "%s", message.message, extra=fields)

    def _on_finished(self, member: Member, message: Finished) -> None:
        member.state = crew.FINISHED

    def _on_input_fault(self, member: Member, message: InputFault) -> None:
        error = crew.error_of(message.faults, message.exit_code)
        self.input_faults.append(error)
        if self.team.has_other_sources(member):  # else it ends the run, whose last line it is
            log.error("%s", error)

    def _on_failed(self, member: Member, message: Failed) -> None:
        member.failure = message  # it is dealt with when the process is gone
        if message.trace:
            log.error("worker '%s' failed:\n%s", message.worker, message.trace.rstrip())

    def _on_death(self, member: Member, status: int) -> None:
        """Have a worker that died started again, or give it up and end the run."""
        error = self._revival.why_dead(member, status)
        if not self._killed and self.succession.roll_back(member, error):
            return
        may_live = self.error is None and not self._killed
        if may_live and self._lives_on(member, error):
            self._absences.review()
            return
        error = crew.given_up(member, error)
        member.state = crew.FAILED
        if not self._killed:
            self.error = self.error or error
            self._absences.replace(member)
            self.stop()

    def _lives_on(self, member: Member, error: EdgertError) -> bool:
        now_s = time.monotonic()
        return self._revival.plan_restart(member, error, now_s) or (
            self._absences.has_others(member) and self._revival.plan_absence(member, error, now_s)
        )

    _ON_MESSAGE: ClassVar[Mapping[type[ToSupervisor], Callable[..., None]]] = {
        Ready: _on_ready,
        **dict.fromkeys((Warm, Left, Lent, Tried, Compared), _on_succession),
        Trying: _on_trying,
        Log: _on_log,
        Failed: _on_failed,
        Finished: _on_finished,
        InputFault: _on_input_fault,
    }

    def _stop_when_due(self) -> None:
        if self._ending.is_due(self.started_s):
            self.stop()

    def _kill_when_late(self) -> None:
        if not self._ending.is_late() or not self.team.is_running:
            return
        if self._killed:
            self.team.spawner.kill()  # stopped, or still forking: whatever it has dies with it
        self.kill(f"did not drain within {self._options.stop_timeout_s:g} s")
        self._ending.killed()

"""The supervisor: owns every segment and fd of a run, starts its workers, and sees it end well.

A loop of verbs over one poll. It never touches a pixel and never imports a vendor's library.

    start -> all READY -> START -> running -> streams end, or Stop -> drained -> ended
                                     a worker fails: Stop to all, a stand-in loses its frames
"""

from __future__ import annotations

import contextlib
import logging
import os
import select
import signal
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import ClassVar

from edgert.control.channel import SupervisorChannel
from edgert.control.messages import (
    Failed,
    Finished,
    InputFault,
    Log,
    Ready,
    Start,
    Stop,
    ToSupervisor,
)
from edgert.errors import EdgertError, RunError, WorkerDiedError
from edgert.plan.structs import Plan, WorkerOrder, WorkerPlan
from edgert.runtime import crew, wiring
from edgert.runtime.crew import Member
from edgert.runtime.folder import RunFolder
from edgert.runtime.spawner import Spawner
from edgert.runtime.standin import StandIn
from edgert.runtime.turns import TurnKeeper
from edgert.runtime.zygote import Exited, FromZygote, Spawned
from edgert.transport.ledger import Ledger
from edgert.transport.segment import map_segment

log = logging.getLogger("edgert.supervisor")

_LAST_WORDS_WITHIN_S = 5.0  # on a machine that is short of CPU, behind a flood of log lines
_SEND_AGAIN_AFTER_S = 0.01


@dataclass(frozen=True, slots=True)
class RunOptions:
    """How a plan is run.

    Attributes:
        max_frames: Frames after which each stream ends; 0 for no limit.
        duration_s: Seconds after which the streams end; 0 for no limit.
        stop_timeout_s: Seconds that draining may take before what still runs is killed.
        log_level: Level of the workers' logs.
        stdout_fd: What the workers' standard output is.
    """

    max_frames: int = 0
    duration_s: float = 0.0
    stop_timeout_s: float = 10.0
    log_level: str = "info"
    stdout_fd: int = 1


class Supervisor:
    """One run of one plan.

    Args:
        plan: What to run.
        options: How.
    """

    def __init__(self, plan: Plan, options: RunOptions) -> None:
        self.plan = plan
        self.members = {worker.name: Member(worker) for worker in plan.workers}
        self.error: EdgertError | None = None
        self.input_faults: list[EdgertError] = []
        self.started_s = 0.0
        self.ended_s = 0.0
        self._options = options
        self._stand_ins: list[StandIn] = []
        self._stop_by_s: float | None = None
        self._killed = False
        self._folder = RunFolder(plan.name)
        try:
            self.fds = wiring.create_all(plan)
        except BaseException:
            self._folder.release()
            raise
        self.ledger = Ledger(map_segment(self.fds["ledger"], writable=True), plan.ledger)
        self._turns = TurnKeeper(plan.turns, self.ledger, self.fds)
        self._channel = SupervisorChannel(self._folder.control_socket)
        self._spawner = Spawner(self._folder.path, options.stdout_fd)
        self._poller = select.poll()
        for fd in (self._channel.fd, self._spawner.fd):
            self._poller.register(fd, select.POLLIN)

    @property
    def is_running(self) -> bool:
        """Whether any worker has not ended yet."""
        return not all(member.exited for member in self.members.values())

    def processes(self) -> list[tuple[str, int]]:
        """Return name and pid of every process under the supervisor."""
        alive = [member for member in self.members.values() if member.pid and not member.exited]
        return [("zygote", self._spawner.pid), *((m.plan.name, m.pid) for m in alive)]

    def watch(self, fd: int) -> None:
        """Let ``step`` return when ``fd`` is readable, too."""
        self._poller.register(fd, select.POLLIN)

    def start(self) -> None:
        """Have every worker forked; they say READY when they are."""
        for worker in self.plan.workers:
            keys = wiring.keys_for(self.plan, worker)
            self._spawner.spawn(self._order(worker, keys), [self.fds[key] for key in keys])

    def step(self, timeout_s: float) -> None:
        """Wait for something to happen, at most ``timeout_s``, and deal with it."""
        self._hear_workers()
        ready = self._poller.poll(max(0.0, self._due_within(timeout_s)) * 1000)
        if any(fd == self._spawner.fd for fd, _ in ready):
            self._hear_zygote()
        self._hear_workers()
        for stand_in in self._stand_ins:
            stand_in.step()
        self._stop_when_due()
        self._kill_when_late()

    def stop(self) -> None:
        """Let every stream end and everything drain."""
        if self._stop_by_s is None:
            self._stop_by_s = time.monotonic() + self._options.stop_timeout_s
            for name in self.members:
                self._channel.send(name, Stop())

    def kill(self, why: str) -> None:
        """Kill every worker that is left; what they had is counted as lost."""
        if not self._killed:
            self._killed = True
            late = [m.plan.name for m in self.members.values() if m.state not in crew.ENDED]
            if self.error is None and late:
                place = f"pipeline '{self.plan.name}'"
                self.error = RunError(place, f"{why}; killed: {', '.join(late)}")
        for member in self.members.values():
            if member.pid and not member.exited:
                with contextlib.suppress(ProcessLookupError):  # reaped, and not heard of yet
                    os.kill(member.pid, signal.SIGKILL)

    def close(self) -> None:
        """Give everything back."""
        self._stand_ins.clear()  # they map rings
        self._spawner.close()
        self._channel.close()
        wiring.close_all(self.fds)
        self._folder.release()

    def _order(self, worker: WorkerPlan, keys: tuple[str, ...]) -> WorkerOrder:
        plan = self.plan
        return WorkerOrder(
            worker=worker,
            rings=wiring.rings_for(plan, worker),
            streams=plan.streams,
            leaves=plan.leaves,
            ledger=plan.ledger,
            control=self._channel.address,
            folder=plan.folder,
            max_frames=self._options.max_frames,
            log_level=self._options.log_level,
            fd_keys=keys,
            turns=plan.turns,
        )

    def _due_within(self, timeout_s: float) -> float:
        """Return how long a poll may last before something of ours is due."""
        now = time.monotonic()
        if any(stand_in.has_unsent for stand_in in self._stand_ins):
            timeout_s = min(timeout_s, _SEND_AGAIN_AFTER_S)
        if self._stop_by_s is not None:
            return min(timeout_s, max(0.0, self._stop_by_s - now))
        if self._options.duration_s and self.started_s:
            return min(timeout_s, max(0.0, self.started_s + self._options.duration_s - now))
        return timeout_s

    def _hear_zygote(self) -> None:
        try:
            message = self._spawner.receive()
        except WorkerDiedError as error:
            self._on_zygote_death(error)
        else:
            self._on_fork_news(message)
        if not self.is_running:
            self.ended_s = time.monotonic()

    def _on_fork_news(self, message: FromZygote) -> None:
        member = self.members[message.worker]
        if isinstance(message, Spawned):
            member.pid = message.pid
            log.debug("worker '%s' is process %d", message.worker, message.pid)
        elif isinstance(message, Exited):
            self._hear_last_words(member, message.status)
            member.exited = True
            self._turns.worker_gone(member.plan.stages)
            if member.state not in crew.ENDED:
                self._on_death(member, message.status)

    def _hear_last_words(self, member: Member, status: int) -> None:
        """What a worker said before it exited may arrive after the news that it has."""
        self._hear_workers()
        deadline_s = time.monotonic() + _LAST_WORDS_WITHIN_S
        while status >= 0 and member.state not in crew.ENDED and time.monotonic() < deadline_s:
            self._channel.wait_message(0.1)
            self._hear_workers()

    def _on_zygote_death(self, error: WorkerDiedError) -> None:
        """Every worker dies with the zygote; nobody is left to drain."""
        self._poller.unregister(self._spawner.fd)
        self._hear_workers()
        if self.error is None:
            self.error = error
        self._killed = True
        for member in self.members.values():
            member.exited = True
            if member.state != crew.FINISHED:
                member.state = crew.FAILED

    def _hear_workers(self) -> None:
        while (message := self._channel.receive_nowait()) is not None:
            self._ON_MESSAGE[type(message)](self, message)

    def _on_ready(self, message: Ready) -> None:
        member = self.members[message.worker]
        member.state = crew.READY
        member.reports = message.reports
        if self._stop_by_s is not None:
            self._channel.send(message.worker, Stop())  # it was not there yet when all were told
        elif all(other.state == crew.READY for other in self.members.values()):
            self.started_s = time.monotonic()
            for name in self.members:
                self._channel.send(name, Start())

    def _on_log(self, message: Log) -> None:
        logging.getLogger(message.logger).log(message.level, "%s", message.message)

    def _on_finished(self, message: Finished) -> None:
        self.members[message.worker].state = crew.FINISHED

    def _on_input_fault(self, message: InputFault) -> None:
        error = crew.error_of(message.faults, 2)
        log.error("%s", error)
        self.input_faults.append(error)

    def _on_failed(self, message: Failed) -> None:
        member = self.members[message.worker]
        member.state = crew.FAILED
        if message.trace:
            log.error("worker '%s' failed:\n%s", message.worker, message.trace.rstrip())
        self._replace(member, crew.error_of_failure(message))

    def _on_death(self, member: Member, status: int) -> None:
        member.state = crew.FAILED
        if not self._killed:
            self._replace(member, crew.error_of_death(member, status))

    _ON_MESSAGE: ClassVar[Mapping[type[ToSupervisor], Callable[..., None]]] = {
        Ready: _on_ready,
        Log: _on_log,
        Failed: _on_failed,
        Finished: _on_finished,
        InputFault: _on_input_fault,
    }

    def _replace(self, member: Member, error: EdgertError) -> None:
        """End the run because of a worker, while a stand-in sees to its frames."""
        if self.error is None:
            self.error = error
        stand_in = StandIn(self.plan, member.plan, self.fds)
        self._stand_ins.append(stand_in)
        for fd in stand_in.fds:
            self._poller.register(fd, select.POLLIN)
        self.stop()

    def _stop_when_due(self) -> None:
        duration_s = self._options.duration_s
        if duration_s and self.started_s and time.monotonic() >= self.started_s + duration_s:
            self.stop()

    def _kill_when_late(self) -> None:
        if self._stop_by_s is None or not self.is_running or time.monotonic() < self._stop_by_s:
            return
        if self._killed:
            self._spawner.kill()  # stopped, or still forking: whatever it has dies with it
        self.kill(f"did not drain within {self._options.stop_timeout_s:g} s")
        self._stop_by_s = time.monotonic() + 1.0

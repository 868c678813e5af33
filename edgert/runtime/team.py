"""The workers of a run at work: how they are forked, spoken to, heard and killed."""

from __future__ import annotations

import signal
import time
from dataclasses import replace

from edgert.control.channel import SupervisorChannel
from edgert.control.messages import Log, LogLevel, ToSupervisor, ToWorker
from edgert.plan.structs import Plan
from edgert.runtime import crew
from edgert.runtime.crew import Member
from edgert.runtime.folder import RunFolder
from edgert.runtime.order import RunOptions, make_order
from edgert.runtime.spawner import Spawner
from edgert.runtime.wiring import Fds


class Team:
    """The members of a run, with the channel and the zygote they share.

    Each has one process, and for a while a second one beside it, its heir (``succession.py``).

    Args:
        plan: What they run.
        options: How.
        folder: The run's folder.
        fds: Every fd of the run.
    """

    def __init__(self, plan: Plan, options: RunOptions, folder: RunFolder, fds: Fds) -> None:
        self.members = {worker.name: Member(worker) for worker in plan.workers}
        self.heirs: dict[str, Member] = {}
        self.channel = SupervisorChannel(folder.control_socket)
        kinds = [stage.kind for stage in plan.stages()]
        self.spawner = Spawner(folder.path, options.stdout_fd, kinds)
        self._plan = plan
        self._options = options
        self._fds = fds

    @property
    def is_running(self) -> bool:
        """Whether any worker has not ended yet, or is to be started again."""
        return any(not m.exited or m.state == crew.WAITING for m in self.members.values())

    def everybody(self) -> list[Member]:
        """Return members and heirs."""
        return [*self.members.values(), *self.heirs.values()]

    def with_identity(self, identity: str) -> Member | None:
        """Return whose process that is; None where it is of one that is no more."""
        return next((each for each in self.everybody() if each.identity == identity), None)

    def has_other_sources(self, member: Member) -> bool:
        """Whether any stream may go on when one of a member's has ended."""
        streams = frozenset(self._plan.streams)
        if len(streams & member.plan.stage_names) > 1:
            return True
        others = [other for other in self.members.values() if other is not member]
        return any(streams & o.plan.stage_names for o in others if o.state not in crew.ENDED)

    def processes(self) -> list[tuple[str, int]]:
        """Return name and pid of every process."""
        alive = [member for member in self.everybody() if member.is_alive]
        return [("zygote", self.spawner.pid), *((m.plan.name, m.pid) for m in alive)]

    def spawn(self, member: Member) -> None:
        """Have a member's process forked."""
        order = make_order(self._plan, member, self._options, self.channel.address)
        self.spawner.spawn(order, [self._fds[key] for key in order.fd_keys])

    def start_due(self) -> None:
        """Start members again whose wait is over."""
        now_s = time.monotonic()
        for member in self.members.values():
            if member.state in (crew.WAITING, crew.AWAY) and member.due_s <= now_s:
                member.begin_again(now_s)
                self.spawn(member)

    def hear(self) -> tuple[Member, ToSupervisor] | None:
        """Return the next message, and who sent it; None where there is none.

        What an earlier process of a member says of its state is over; its log lines are not.
        """
        while (received := self.channel.receive_nowait()) is not None:
            identity, message = received
            member = self.with_identity(identity)
            if member is None and isinstance(message, Log):
                member = self.members.get(message.worker)
            if member is not None and member.plan.name == message.worker:
                return member, message
        return None

    def tell(self, member: Member, message: ToWorker) -> None:
        """Tell one member something; one that is gone does not hear it."""
        self.channel.send(member.identity, message)

    def tell_all(self, message: ToWorker) -> None:
        """Tell every member something."""
        for member in self.everybody():
            self.tell(member, message)

    def set_log_level(self, level: str) -> None:
        """Have every member, also those that are started from now on, log from a level on."""
        self._options = replace(self._options, log_level=level)
        self.tell_all(LogLevel(level))

    def kill(self) -> None:
        """Kill every member that is left, and start none again."""
        for member in self.members.values():
            if member.state == crew.WAITING:
                member.state = crew.FAILED
        for member in self.everybody():
            if member.is_alive:
                crew.send_signal(member, signal.SIGKILL)

    def close(self) -> None:
        """End what still runs, and give everything back."""
        self.spawner.close()
        self.channel.close()

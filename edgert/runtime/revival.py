"""What becomes of a worker that died or hangs: why it did, and when it is started again."""

from __future__ import annotations

import logging
import random
import signal
import time
from collections.abc import Iterable

from edgert.device.cgroup import oom_kills
from edgert.errors import DeviceLostError, EdgertError, UserError
from edgert.plan.structs import Plan
from edgert.runtime import crew, watch
from edgert.runtime.crew import Member
from edgert.runtime.poison import Poison
from edgert.runtime.wiring import Fds
from edgert.stages.base import ATTEMPT
from edgert.transport.ledger import Ledger

log = logging.getLogger("edgert.supervisor")


class Revival:
    """Decides by the policy in the plan; the supervisor acts.

    Args:
        plan: The plan of the run.
        ledger: Its ledger.
        fds: Every fd of the run.
    """

    def __init__(self, plan: Plan, ledger: Ledger, fds: Fds) -> None:
        self._ledger = ledger
        self._fds = fds
        self._poison = Poison(plan, ledger, fds)
        self._oom_kills = oom_kills()

    def why_dead(self, member: Member, status: int) -> EdgertError:
        """Return the error of a worker that is gone."""
        if member.failure is not None:
            return crew.error_of_failure(member.failure)
        kills_before, self._oom_kills = self._oom_kills, oom_kills()
        return crew.error_of_death(
            member, status, out_of_memory=self._oom_kills > kills_before and not member.hung
        )

    def plan_restart(self, member: Member, error: EdgertError, now_s: float) -> bool:
        """Have a worker wait for its restart; whether it is started again."""
        if member.trying is not None and member.failure is None:
            return self._try_next_device(member, error, now_s)
        member.forgive(now_s)
        if not member.was_ready or member.absences or _is_for_the_user(member, error):
            return False
        chance = random.random()  # noqa: S311  for jitter
        delay_s = member.plan.restart.next_delay_s(member.restarts_s, now_s, chance)
        if delay_s is None:
            return False
        self._note_death(member, error)
        member.state = crew.WAITING
        member.due_s = now_s + delay_s
        log.warning(
            "%s: %s: started again in %.1f s (restart %d, allowed are %s)",
            error.faults[0].place, error.faults[0].fault, delay_s,
            member.restarts + 1, member.plan.restart.budget,
        )  # fmt: skip
        return True

    def plan_absence(self, member: Member, error: EdgertError, now_s: float) -> bool:
        """Have a worker stay away while others of its stage do its work; whether it may."""
        policy = member.plan.restart
        if not member.was_ready or policy.policy == "never":
            return False
        self._note_death(member, error)
        away_s = policy.absence_s(member.absences)
        member.absences += 1
        member.state = crew.AWAY
        member.due_s = now_s + away_s
        fault = error.faults[0]
        log.error(
            "worker '%s' is away for %.0f s, the others of its stage do its work: %s: %s "
            "(restarts %d, allowed are %s)",
            member.plan.name, away_s, fault.place, fault.fault, member.restarts, policy.budget,
        )  # fmt: skip
        return True

    def _note_death(self, member: Member, error: EdgertError) -> None:
        member.why_down = f"{error.faults[0].place}: {error.faults[0].fault}"
        if member.state == crew.READY:  # else it died before it could try a frame again
            self._poison.note_death(member)
            _note_lost_device(member, error)
        else:
            member.refused.clear()  # what refuses now may be back in a moment

    def _try_next_device(self, member: Member, error: EdgertError, now_s: float) -> bool:
        """Have a worker that hung or died while it opened a device start anew without that."""
        trying = member.trying
        if trying is None:
            return False
        fault = error.faults[0].fault
        member.refused.setdefault(trying.stage, {})[trying.device] = fault
        log.warning("stage '%s': %s refused: %s", trying.stage, trying.device, fault)
        member.state = crew.WAITING
        member.due_s = now_s
        return True

    def kill_hung(self, members: Iterable[Member]) -> None:
        """Have workers that hang say where, and kill them."""
        now_s = time.monotonic()
        for member in members:
            if member.stack_by_s and now_s >= member.stack_by_s and member.is_alive:
                self._kill(member)
            elif not member.hung and member.is_alive:
                member.hung = self._why_hung(member, now_s)
                if member.hung:
                    crew.send_signal(member, watch.STACK_SIGNAL)
                    member.stack_by_s = now_s + watch.STACK_WITHIN_S

    def _why_hung(self, member: Member, now_s: float) -> str:
        if member.state == crew.READY:
            return watch.why_hung(member.plan, self._ledger, time.monotonic_ns())
        trying = member.trying
        if trying is None or now_s < member.try_by_s:
            return ""
        return f"{trying.device} did not open within {trying.within_s:g} s"

    def _kill(self, member: Member) -> None:
        member.stack_by_s = 0.0
        stack = watch.read_stack(self._fds[f"stack/{member.plan.name}"])
        log.error("worker '%s' hangs: %s\n%s", member.plan.name, member.hung, stack)
        crew.send_signal(member, signal.SIGKILL)


def _note_lost_device(member: Member, error: EdgertError) -> None:
    """Note the device with which a worker failed: its successor tries the others first."""
    for stage, report in member.reports.items():
        device = report.get(ATTEMPT)
        failed = isinstance(error, DeviceLostError) and error.faults[0].place == f"stage '{stage}'"
        if device and (failed or member.hung.startswith(f"stage '{stage}'")):
            lost = member.lost.setdefault(stage, {})
            lost.pop(device, None)  # the last one stands last
            lost[device] = error.faults[0].fault.removeprefix(f"{device}: ")


def _is_for_the_user(member: Member, error: EdgertError) -> bool:
    """Whether somebody has to mend something first: trying again would not.

    What has worked before and does not open again (a device that is reset) may do so in a moment.
    """
    if member.failure is None or member.state != crew.READY:
        return False
    return isinstance(error, UserError) or all(fault.mend for fault in error.faults)

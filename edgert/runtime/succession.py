"""How a worker that is well gets a successor: the same again, or one with another plan.

    open_beside -> an heir opens -> Warm; take_over -> Leave -> Left, exited -> Go -> Ready
                   (only where no frame depends on another: a camera cannot be opened twice)
    ask -> Leave -> Left, exited -> started again -> Ready
                   (everything else)

Frames wait in their rings meanwhile, as after a death. An heir that fails changes nothing; one with
another plan that fails after its predecessor has left is followed by one with the old plan.
"""

from __future__ import annotations

import logging
import signal
import time

from edgert.control.messages import Go, Leave, Left, ToSupervisor, Warm
from edgert.errors import EdgertError
from edgert.plan.structs import TrialOrder, WorkerPlan
from edgert.plan.swaps import may_be_open_twice
from edgert.runtime import crew
from edgert.runtime.crew import Member
from edgert.runtime.team import Team
from edgert.runtime.trials.trial import Trial
from edgert.stages.registry import Registry

log = logging.getLogger("edgert.supervisor")

_KILL_AGAIN_AFTER_S = 1.0
_OPEN_WITHIN_S = 600.0  # an heir; opening a device has limits of its own (`open_timeout_s`)


class Succession:
    """Lets workers be followed by others.

    Args:
        team: The workers.
        leave_within_s: Seconds that finishing what is under way may take.

    Attributes:
        failed: Worker -> why its heir, or its new plan, could not be started.
        trials: Stage -> the last trial of an heir of it, under way or over.
    """

    def __init__(self, team: Team, leave_within_s: float) -> None:
        self.failed: dict[str, EdgertError] = {}
        self.trials: dict[str, Trial] = {}
        self._team = team
        self._leave_within_s = leave_within_s

    def ask(self, member: Member, plan: WorkerPlan | None = None) -> None:
        """Let a worker that is ready leave; its next process runs ``plan``, or the same."""
        self.failed.pop(member.plan.name, None)
        member.next_plan = plan
        self._let_leave(member)

    def open_beside(
        self, member: Member, plan: WorkerPlan, trials: tuple[TrialOrder, ...] = ()
    ) -> None:
        """Have an heir with another plan open its stages beside a worker."""
        name = member.plan.name
        self.failed.pop(name, None)
        self._team.heirs[name] = heir = member.heir(plan, trials)
        heir.due_s = time.monotonic() + _OPEN_WITHIN_S
        self._team.spawn(heir)

    def hear(self, member: Member, message: ToSupervisor) -> None:
        """Note what a worker says that leaves or comes, or that is tried."""
        if isinstance(message, Warm):
            member.is_warm = True
            member.trying, member.try_by_s = None, 0.0
        elif isinstance(message, Left):
            member.has_left = True
        else:
            for trial in self.trials.values():
                trial.hear(member, message)

    def take_over(self, member: Member) -> None:
        """Let a worker leave to the heir that has opened its stages beside it."""
        heir = self._team.heirs[member.plan.name]
        if member.state == crew.READY:
            self._let_leave(member)
        else:  # it died meanwhile, and is on its way back by itself
            self.give_up(heir, "the worker whose place it takes has died")

    def has_ended(self, member: Member) -> bool:
        """Deal with the exit of a worker that was told to leave; whether it was."""
        if not member.leave_by_s:
            return False
        if member.failure is not None:
            log.warning("%s", crew.error_of_failure(member.failure))
        heir = self._team.heirs.get(member.plan.name)
        if heir is not None and heir.is_warm and heir.is_alive and heir.state != crew.FAILED:
            del self._team.heirs[member.plan.name]
            heir.inherit(member)
            self._team.members[member.plan.name] = heir
            self._team.tell(heir, Go())
            return True
        if member.next_plan is not None:
            member.fallback, member.plan = member.plan, member.next_plan
            member.next_plan = None
            member.refused, member.lost = {}, {}
        member.state, member.due_s = crew.WAITING, 0.0
        return True

    def heir_has_ended(self, heir: Member, error: EdgertError) -> None:
        """Note why an heir did not get ready; who was there goes on."""
        self._team.heirs.pop(heir.plan.name, None)
        self.failed.setdefault(heir.plan.name, error)

    def roll_back(self, member: Member, error: EdgertError) -> bool:
        """Go back to the old plan where a new one could not be started; whether that is so."""
        if member.fallback is None or member.state != crew.STARTING:
            return False
        self.failed[member.plan.name] = error
        member.plan, member.fallback = member.fallback, None
        member.refused, member.lost = {}, {}
        member.state, member.due_s = crew.WAITING, 0.0
        log.warning("worker '%s' goes back to its old plan: %s", member.plan.name, error)
        return True

    def give_up(self, heir: Member, why: str, mend: str = "See its log, and try again") -> None:
        """End an heir that is not wanted any more."""
        place = f"worker '{heir.plan.name}'"
        self.failed.setdefault(heir.plan.name, EdgertError(place, why, mend))
        heir.state = crew.FAILED
        if heir.is_alive:
            crew.send_signal(heir, signal.SIGKILL)

    def nobody_left(self, member: Member) -> None:
        """End the heir of a worker that ended by itself."""
        heir = self._team.heirs.get(member.plan.name)
        if heir is not None:
            self.give_up(heir, "the worker whose place it takes has ended by itself")

    def cancel(self) -> None:
        """End every heir: the run ends."""
        for heir in self._team.heirs.values():
            self.give_up(
                heir, "the run ends", "Start it again: it takes its file as it stands then"
            )

    def kill_late(self) -> None:
        """Kill workers that do not leave, and heirs that were forked after they were given up."""
        now_s = time.monotonic()
        for member in self._team.members.values():
            if member.leave_by_s and now_s >= member.leave_by_s and member.is_alive:
                log.warning("worker '%s' does not leave: it is killed", member.plan.name)
                member.leave_by_s = now_s + _KILL_AGAIN_AFTER_S
                crew.send_signal(member, signal.SIGKILL)
        for heir in self._team.heirs.values():
            if heir.state != crew.FAILED and not heir.is_warm and now_s >= heir.due_s:
                self.give_up(heir, f"did not open within {_OPEN_WITHIN_S:g} s")
            if heir.state == crew.FAILED and heir.is_alive:
                crew.send_signal(heir, signal.SIGKILL)

    def _let_leave(self, member: Member) -> None:
        member.leave_by_s = time.monotonic() + self._leave_within_s
        self._team.tell(member, Leave())


def can_be_opened_twice(plan: WorkerPlan) -> bool:
    """Whether a worker's stages may be open in two processes at once: no sources, no sinks."""
    kinds = Registry()
    return all(may_be_open_twice(kinds.stage_class(stage.kind)) for stage in plan.stages)

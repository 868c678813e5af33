"""Who stands in for workers that are down or given up.

Of a stage of several workers the others do its work meanwhile:

    down for a moment (it is started again soon), or away for long (its budget is used up)
        its frames go to others as long as one of them is ready; a stand-in passes gaps and ends on
    none is ready
        frames wait for whoever is started again first
    ready again
        it is given frames as the others are

Whether a worker is to be given frames stands in the ledger (``away``), where writers look.
"""

from __future__ import annotations

import math
import select
from collections.abc import Iterator

from edgert.control.messages import Deal
from edgert.plan.structs import Plan
from edgert.runtime import crew
from edgert.runtime.absentee import Absentee
from edgert.runtime.crew import Member
from edgert.runtime.standin import StandIn
from edgert.runtime.team import Team
from edgert.runtime.wiring import Fds
from edgert.transport.ledger import Ledger, StageBlock


class Absences:
    """Keeps the stand-ins of workers that are down.

    Args:
        plan: The plan of the run.
        team: Its workers.
        ledger: Its ledger.
        fds: Every fd of the run.
        poller: Waits for what the supervisor waits for.
    """

    def __init__(
        self, plan: Plan, team: Team, ledger: Ledger, fds: Fds, poller: select.poll
    ) -> None:
        self._plan = plan
        self._team = team
        self._ledger = ledger
        self._fds = fds
        self._poller = poller
        self._groups = _groups_of(plan)
        self._stand_ins: dict[str, Absentee] = {}
        self._for_good: list[StandIn] = []

    @property
    def has_unsent(self) -> bool:
        """Whether a pipe was full: then ``step`` is due soon."""
        stand_ins: list[Absentee | StandIn] = [*self._stand_ins.values(), *self._for_good]
        return any(each.has_unsent for each in stand_ins)

    def has_others(self, member: Member) -> bool:
        """Whether another worker of a member's stage is at work, will be soon, or has done all."""
        able = (crew.READY, crew.STARTING, crew.WAITING, crew.FINISHED)
        return any(
            other is not member and other.state in able
            for group in self._members()
            if member in group
            for other in group
        )

    def review(self) -> None:
        """Decide who stands in for whom, after a worker has died or become ready."""
        for group in self._members():
            somebody_is_there = any(member.state == crew.READY for member in group)
            for member in group:
                is_down = member.state == crew.AWAY or (
                    somebody_is_there and member.state != crew.READY
                )
                words = self._ledger.stage(member.plan.name).words
                words[StageBlock.AWAY] = is_down
                waits = member.exited and member.state in (crew.WAITING, crew.AWAY)
                if is_down and waits and member.plan.name not in self._stand_ins:
                    self._begin(member)
                elif not (is_down and waits):
                    self._end(member.plan.name)

    def step(self) -> None:
        """Let every stand-in go on."""
        for one in self._for_good:
            one.step()
        for name, stand_in in self._stand_ins.items():
            if stand_in.step():
                self._have_dealt(name)

    def end_due(self, now_s: float, *, is_draining: bool) -> None:
        """Have stand-ins make room for workers that are due; who is not needed stays away."""
        for member in self._team.members.values():
            stand_in = self._stand_ins.get(member.plan.name)
            if stand_in is None:
                continue
            if stand_in.has_ended or (is_draining and member.state == crew.AWAY):
                member.state, member.due_s = crew.AWAY, math.inf
            elif member.due_s <= now_s and not stand_in.has_unsent:
                self._end(member.plan.name)

    def close(self) -> None:
        """Let go of the rings."""
        self._stand_ins.clear()
        self._for_good.clear()

    def replace(self, member: Member) -> None:
        """Have a worker that is given up, with which the run ends, lose its frames properly."""
        self._end(member.plan.name)
        self.review()
        stand_in = StandIn(self._plan, member.plan, self._fds)
        self._for_good.append(stand_in)
        for fd in stand_in.fds:
            self._poller.register(fd, select.POLLIN)

    def _begin(self, member: Member) -> None:
        stage = member.plan.stages[0]
        set_aside = {(stream, n) for name, stream, n in member.set_aside if name == stage.name}
        stand_in = Absentee(self._plan, stage, self._fds, set_aside)
        self._stand_ins[member.plan.name] = stand_in
        for fd in stand_in.fds:
            self._poller.register(fd, select.POLLIN)
        if stand_in.step():
            self._have_dealt(member.plan.name)

    def _end(self, name: str) -> None:
        stand_in = self._stand_ins.pop(name, None)
        for fd in stand_in.fds if stand_in else ():
            self._poller.unregister(fd)

    def _have_dealt(self, stage: str) -> None:
        """Tell those that write to a stage that frames came back; who starts just now looks."""
        writers = {
            ring.writer
            for ring in self._plan.rings
            if any(edge.reader == stage for edge in ring.edges)
        }
        for member in self._team.members.values():
            if writers & member.plan.stage_names:
                self._team.tell(member, Deal())

    def _members(self) -> Iterator[list[Member]]:
        for group in self._groups:
            yield [self._team.members[name] for name in group]


def _groups_of(plan: Plan) -> list[list[str]]:
    """Return the names of the workers of each stage that has several."""
    groups: dict[str, set[str]] = {}
    for ring in plan.rings:
        for edge in ring.edges:
            if edge.shared:
                groups.setdefault(edge.shared, set()).add(edge.reader)
    return [sorted(group) for group in groups.values()]

"""What a run is asked for that takes a while: one at a time, stepped until it has an outcome."""

from __future__ import annotations

from typing import Protocol

import msgspec

from edgert.errors import RunError, UserError
from edgert.pipeline.near import choices
from edgert.plan.structs import Plan
from edgert.runtime import crew
from edgert.runtime.crew import Member
from edgert.runtime.reload import Planning, Replan, changed_options, require_same_graph
from edgert.runtime.supervisor import Supervisor
from edgert.runtime.switch import Switch
from edgert.stages.registry import Registry


class Errand(Protocol):
    """Something that takes a while."""

    @property
    def is_partial(self) -> bool:
        """Whether it failed, and part of it has been done all the same."""
        ...

    @property
    def said(self) -> str:
        """How far it has come, in words."""
        ...

    def step(self) -> str:
        """Go on; what was done, in words, or nothing while it is not over.

        Raises:
            EdgertError: It cannot be done, or has failed.
        """
        ...


class Restarting:
    """A stage's worker is followed by another of the same plan.

    Raises:
        UserError: There is no such stage, or it cannot be started again now.
    """

    is_partial = False
    said = "the next process of its worker is waited for"

    def __init__(self, supervisor: Supervisor, stage: str) -> None:
        self._supervisor = supervisor
        self._stage = stage
        member = _member_of(supervisor, stage)
        self._absences = member.absences
        if member.state == crew.AWAY and supervisor.phase == "running":
            member.due_s = 0.0
            return
        if member.state != crew.READY:
            fault = f"cannot be started again: its worker is {member.state}"
            raise UserError(f"stage '{stage}'", fault, "Look at its status, and try again")
        supervisor.succession.ask(member)

    def step(self) -> str:
        """Wait until the next process is ready, or the worker has ended by itself."""
        member = _member_of(self._supervisor, self._stage)
        if member.state == crew.FAILED:
            place, mend = f"stage '{self._stage}'", "The log says why; mend it, and start the run"
            raise self._supervisor.error or UserError(place, "has failed", mend)
        if member.state == crew.AWAY and member.absences > self._absences:
            raise RunError(f"stage '{self._stage}'", member.why_down, "See the lines of its log")
        if member.state == crew.FINISHED:
            return f"stage '{self._stage}' had come to its end"
        if member.leave_by_s or member.state != crew.READY:
            return ""
        return f"stage '{self._stage}' runs again, as process {member.pid}"


class Reloading:
    """The file is read again; what has changed is taken over, or nothing is.

    Args:
        supervisor: Of the run.
        replan: Makes the plan of the file as it stands.
        settings: Settings to apply over it, beside those of the command line.
        only: ``STAGE.KEY`` that alone may have changed; empty for anything.
    """

    def __init__(
        self, supervisor: Supervisor, replan: Replan, settings: tuple[str, ...], only: str = ""
    ) -> None:
        self._supervisor = supervisor
        self._only = only
        self._planning = Planning(replan, settings)
        self._switch: Switch | None = None

    @property
    def is_partial(self) -> bool:
        """Whether it failed, and part of what is new runs all the same."""
        return self._switch is not None and self._switch.is_partial

    @property
    def said(self) -> str:
        """How far it has come, in words."""
        return self._switch.said if self._switch is not None else "the file is read"

    def step(self) -> str:
        """Plan, compare, and switch."""
        if self._switch is None:
            plan = self._planning.result()
            if plan is None:
                return ""
            self._switch = self._begin(plan)
        switch = self._switch
        if not switch.has_ended():
            return ""
        if not switch.live and not switch.followed:
            return "nothing has changed"
        told = list(switch.told)
        told += [f"stage '{name}' goes on with other options" for name in switch.live]
        told += [f"worker '{name}' is followed by another" for name in switch.followed]
        return "; ".join(told)

    def _begin(self, new: Plan) -> Switch:
        supervisor = self._supervisor
        workers = tuple(member.plan for member in supervisor.members.values())
        old = msgspec.structs.replace(supervisor.plan, workers=workers)
        require_same_graph(old, new)
        if self._only:
            _require_only(old, new, self._only)
        if supervisor.phase != "running":
            raise UserError(f"pipeline '{old.name}'", f"is {supervisor.phase}", "Try again later")
        return Switch(supervisor, old, new)


def _require_only(old: Plan, new: Plan, only: str) -> None:
    """Refuse what may not change while running, and whatever else the file has changed."""
    stage_name, _, path = only.partition(".")
    key = path.partition(".")[0]
    after = {stage.name: stage for stage in new.stages()}
    for stage in old.stages():
        changed = changed_options(stage, after[stage.name])
        if not changed:
            continue
        place = f"stage '{stage.name}'"
        if stage.name.partition(".")[0] != stage_name or changed != {key}:
            fault = f"differs in {', '.join(sorted(changed))} from what runs, besides '{only}'"
            raise UserError(place, fault, "The file was changed: reload it first")
        kind = Registry().stage_class(stage.kind)
        if key not in kind.live_options | kind.swap_options:
            allowed = sorted(kind.live_options | kind.swap_options)
            fault = f"key '{key}' needs a reload: it cannot be set while the stage runs"
            can = f"Those that can: {', '.join(allowed)}" if allowed else "None of its keys can"
            raise UserError(place, fault, f"Change the file and reload. {can}")


def _member_of(supervisor: Supervisor, stage: str) -> Member:
    names = {name: m for m in supervisor.members.values() for name in m.plan.stage_names}
    if stage not in names:
        known = [one.name for one in supervisor.plan.stages()]
        mend = choices(stage, known, "Its stages")
        raise UserError(f"stage '{stage}'", "is not in this pipeline", mend)
    return names[stage]

"""From the plan that runs to another of the same graph: as a whole, or not at all.

    heirs open beside their predecessors -> those with `swap` are tried (trials/trial.py)
      -> what cannot be open twice leaves and comes back
      -> heirs take over, and stages take other options over while they run

Until then nobody but those in the middle has changed. What fails is undone: whoever runs the new
plan already goes back to the old one, by the same ways.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator

import msgspec

from edgert.control.messages import Change
from edgert.errors import EdgertError, Fault
from edgert.plan.structs import Plan, WorkerPlan
from edgert.runtime import crew
from edgert.runtime.reload import can_change_live
from edgert.runtime.succession import can_be_opened_twice
from edgert.runtime.supervisor import Supervisor
from edgert.runtime.trials.trial import Trial
from edgert.runtime.trials.trial_orders import bounds_of_stage, trials_of
from edgert.stages.registry import Registry
from edgert.stages.swap_options import SwapOptions

log = logging.getLogger("edgert.control")

# What a step of ours says while it waits.
_WAITS = False


class Switch:
    """Takes a run from its plan to another, step by step.

    Args:
        supervisor: Of the run.
        old: The plan that runs.
        new: The other.

    Attributes:
        live: Stages that take other options over while they run.
        followed: Workers that are followed by others.
        told: What came of trials that were passed.
        is_partial: Whether it failed, and could not be undone everywhere.
    """

    def __init__(self, supervisor: Supervisor, old: Plan, new: Plan) -> None:
        self.live: list[str] = []
        self.followed: list[str] = []
        self.told: list[str] = []
        self._trial: Trial | None = None
        self.is_partial = False
        self._supervisor = supervisor
        self._team = supervisor.team
        self._succession = supervisor.succession
        self._plans = old, new
        self._old: dict[str, WorkerPlan] = {}
        self._new = {worker.name: worker for worker in new.workers}
        self._changed_live: list[str] = []
        self._beside: list[str] = []
        self._in_place: list[str] = []
        self._away: list[str] = []
        for worker in new.workers:
            self._sort_in(worker)
        self._steps = self._go()

    def has_ended(self) -> bool:
        """Go on; whether every worker runs its new plan.

        Raises:
            EdgertError: One of them cannot; what had changed was undone.
        """
        return next(self._steps, not _WAITS)

    @property
    def said(self) -> str:
        """How far it has come, in words."""
        if self._trial is not None:
            return self._trial.progress
        opening = [name for name in self._beside if not self._is_open(name)]
        if opening:
            return f"beside those that run, stages are opened: {', '.join(opening)}"
        return "workers are followed by others"

    def _sort_in(self, worker: WorkerPlan) -> None:
        """Decide by which way a worker gets its new plan."""
        member = self._team.members[worker.name]
        if worker == member.plan:
            return
        self._old[worker.name] = member.plan
        changed = _changed_live(member.plan, worker)
        if changed:
            self.live += changed
            self._changed_live.append(worker.name)
        elif member.state in crew.ENDED:
            log.info("worker '%s' has ended: nothing changes for it", worker.name)
        elif member.state == crew.AWAY:
            self.followed.append(worker.name)
            self._away.append(worker.name)
        else:
            self.followed.append(worker.name)
            (self._beside if can_be_opened_twice(worker) else self._in_place).append(worker.name)

    def _go(self) -> Iterator[bool]:
        try:
            yield from self._open_heirs()
            for name in self._beside:
                yield from self._wait(self._beside, self._is_open)  # none has died since
                yield from self._try(name)
            yield from self._replace(self._in_place)
            for name in self._changed_live:
                self._change(name, self._new[name])
            yield from self._take_over()
            yield from self._call_back()
        except EdgertError as error:
            yield from self._undo(error)
            raise

    def _open_heirs(self) -> Iterator[bool]:
        for name in self._beside:
            trials = trials_of(self._new[name], *self._plans)
            self._succession.open_beside(self._team.members[name], self._new[name], trials)
        yield from self._wait(self._beside, self._is_open)

    def _try(self, name: str) -> Iterator[bool]:
        """Try the stages of an heir that have to show something, one after another."""
        heir, member = self._team.heirs[name], self._team.members[name]
        stages = {stage.name: stage for stage in heir.plan.stages}
        for order in heir.trials:
            stage = stages[order.stage]
            bounds = bounds_of_stage(stage) or SwapOptions()
            trial = Trial(self._team, member, heir, order, stage, bounds)
            self._succession.trials[stage.name] = self._trial = trial
            log.info("%s: model %s is tried beside the one that runs", trial.place, trial.model)
            try:
                yield from self._wait_trial(trial, name)
            finally:
                trial.close()
                self._trial = None
            self.told.append(f"{trial.place}: {trial.said}")

    def _wait_trial(self, trial: Trial, name: str) -> Iterator[bool]:
        failed = self._succession.failed
        while not failed.keys() & set(self._beside):
            if trial.has_ended():
                return
            yield _WAITS
        if name in failed:
            raise trial.failed(failed.pop(name))
        errors = [failed.pop(each) for each in self._beside if each in failed]
        raise trial.keep_back(_together(errors))

    def _replace(self, names: Iterable[str]) -> Iterator[bool]:
        for name in names:
            self._succession.ask(self._team.members[name], self._new[name])
        yield from self._wait(names, self._is_settled)

    def _take_over(self) -> Iterator[bool]:
        yield from self._wait(self._beside, self._is_open)
        for name in self._beside:
            self._succession.take_over(self._team.members[name])
        yield from self._wait(self._beside, self._is_settled)

    def _call_back(self) -> Iterator[bool]:
        """Start those that were away with the new plan; the others of their stage do their work."""
        yield from self._wait(self._away, self._is_settled)
        back = []
        for name in self._away:
            member = self._team.members[name]
            if member.state == crew.AWAY:
                member.plan, member.due_s = self._new[name], 0.0
            elif member.state == crew.READY:  # it came back by itself meanwhile
                back.append(name)
        yield from self._replace(back)

    def _wait(self, names: Iterable[str], is_so: Callable[[str], bool]) -> Iterator[bool]:
        """Wait until something is so of all of them, or one has failed."""
        failed = self._succession.failed
        while not all(map(is_so, names)) and not failed.keys() & set(names):
            yield _WAITS
        errors = [failed.pop(name) for name in names if name in failed]
        if errors:
            raise _together(errors)

    def _undo(self, error: EdgertError) -> Iterator[bool]:
        """Go back to the old plan wherever the new one runs; tell where that fails."""
        for name in self._beside:
            heir = self._team.heirs.get(name)
            if heir is not None and heir.state != crew.FAILED:
                self._succession.give_up(heir, "another worker could not be changed")
        while not all(map(self._is_settled, self.followed)):
            yield _WAITS
        for name in self._changed_live:
            if self._team.members[name].plan == self._new[name]:
                self._change(name, self._old[name])
        changed = self._still_changed()
        for name in changed:
            member = self._team.members[name]
            if member.state == crew.READY and self._supervisor.phase == "running":
                self._succession.ask(member, self._old[name])
        while not all(map(self._is_settled, changed)):
            yield _WAITS
        changed = self._still_changed()
        self.is_partial = bool(changed)
        if changed:
            place = f"pipeline '{self._supervisor.plan.name}'"
            fault = f"{', '.join(changed)} could not go back, and run what is new"
            error.faults += (Fault(place, fault, "Mend the file, and reload it"),)

    def _still_changed(self) -> list[str]:
        return [
            name
            for name in self.followed
            if self._team.members[name].plan == self._new[name]
            and self._team.members[name].state not in crew.ENDED
        ]

    def _is_open(self, name: str) -> bool:
        heir = self._team.heirs.get(name)
        return heir is not None and heir.is_warm

    def _is_settled(self, name: str) -> bool:
        member = self._team.members[name]
        is_at_rest = member.state in (crew.READY, crew.AWAY, *crew.ENDED)
        return is_at_rest and name not in self._team.heirs and not member.leave_by_s

    def _change(self, name: str, plan: WorkerPlan) -> None:
        member = self._team.members[name]
        before, member.plan = member.plan, plan  # what a later process of it runs
        for old, new in zip(before.stages, plan.stages, strict=True):
            if old != new:
                self._team.tell(member, Change(new.name, new.settings))


def _changed_live(old: WorkerPlan, new: WorkerPlan) -> list[str]:
    """Return the stages that take what differs over while they run; none where one cannot."""
    pairs = [pair for pair in zip(old.stages, new.stages, strict=True) if pair[0] != pair[1]]
    alike = msgspec.structs.replace(new, stages=old.stages) == old
    kinds = Registry()
    if alike and all(can_change_live(a, b, kinds.stage_class(b.kind)) for a, b in pairs):
        return [b.name for _, b in pairs]
    return []


def _together(errors: list[EdgertError]) -> EdgertError:
    """Return several errors as one of the first one's kind."""
    first = errors[0].faults[0]
    error = type(errors[0])(first.place, first.fault, first.mend)
    error.faults = tuple(fault for each in errors for fault in each.faults)
    return error

"""A new plan for a run that goes on: how it is made, and what differs from the one that runs."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

import msgspec

from edgert.errors import EdgertError, Fault, RunError, UserError
from edgert.plan.structs import Plan, StagePlan
from edgert.stages.base import Stage

Replan = Callable[[tuple[str, ...]], Plan]

_FIXED = ("name", "folder", "in_flight", "streams", "leaves", "ledger", "turns")
_NEEDS_A_START = "Stop this run and start it again: it takes what a change of the graph needs anew"


def require_same_graph(old: Plan, new: Plan) -> None:
    """Refuse a plan that has other stages, links or sizes than the one that runs.

    Raises:
        UserError: It has; everything that differs is named.
    """
    place = f"pipeline '{old.name}'"
    faults = [Fault(place, fault, _NEEDS_A_START) for fault in _differences(old, new)]
    if faults:
        error = UserError(place, faults[0].fault, _NEEDS_A_START)
        error.faults = tuple(faults)
        raise error


def _differences(old: Plan, new: Plan) -> Iterator[str]:
    before = {stage.name for stage in old.stages()}
    after = {stage.name for stage in new.stages()}
    yield from (f"stage '{name}' is not in the new file" for name in sorted(before - after))
    yield from (f"stage '{name}' is new" for name in sorted(after - before))
    if before == after:
        yield from _differences_of_same_stages(old, new)


def _differences_of_same_stages(old: Plan, new: Plan) -> Iterator[str]:
    after = {stage.name: stage for stage in new.stages()}
    for stage in old.stages():
        name = stage.name
        if _shape(stage) != _shape(after[name]):
            yield f"stage '{name}' has another kind, other links, or carries something else"
    if [(w.name, w.stage_names) for w in old.workers] != [
        (w.name, w.stage_names) for w in new.workers
    ]:
        yield "stages share their workers in another way"
    for before_ring, after_ring in zip(old.rings, new.rings, strict=False):
        if before_ring != after_ring:
            yield f"the ring '{before_ring.name}' would have another size, or other readers"
    for key in _FIXED:
        if getattr(old, key) != getattr(new, key):
            yield f"'{key}' differs"


def _shape(stage: StagePlan) -> tuple[Any, ...]:
    """Return what of a stage its neighbours rely on."""
    ports = [
        {name: (port.kind, port.tensors, port.metadata_bytes) for name, port in found.items()}
        for found in (stage.input_ports, stage.output_ports)
    ]
    return (stage.kind, stage.inputs, stage.outputs, stage.streams, stage.leaf, *ports)


def changed_options(old: StagePlan, new: StagePlan) -> frozenset[str]:
    """Return the keys of a stage that differ."""
    keys = old.settings.keys() | new.settings.keys()
    return frozenset(k for k in keys if old.settings.get(k) != new.settings.get(k))


def can_change_live(old: StagePlan, new: StagePlan, kind: type[Stage]) -> bool:
    """Whether a stage can take what differs over while it runs."""
    same = msgspec.structs.replace(new, settings=old.settings) == old
    return same and changed_options(old, new) <= kind.live_options


class Planning:
    """Reads and plans the file in a thread, so that the run is looked after meanwhile.

    Args:
        replan: Makes the plan of the file as it stands, with further settings.
        settings: These.
    """

    def __init__(self, replan: Replan, settings: tuple[str, ...]) -> None:
        self._replan = replan
        self._settings = settings
        self._plan: Plan | None = None
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._work, name="edgert-reload", daemon=True)
        self._thread.start()

    def result(self) -> Plan | None:
        """Return the plan; None while there is none yet.

        Raises:
            EdgertError: It has faults, all of them.
        """
        if self._thread.is_alive():
            return None
        if isinstance(self._error, EdgertError):
            raise self._error
        if self._error is not None:
            said = f"{type(self._error).__name__}: {self._error}"
            mend = "This is a fault of edgert: 'edgert check FILE' shows it with its trace"
            raise RunError("reload", f"planning raised {said}", mend) from self._error
        return self._plan

    def _work(self) -> None:
        try:
            self._plan = self._replan(self._settings)
        except BaseException as error:  # noqa: BLE001  told by ``result``, in the run's own thread
            self._error = error

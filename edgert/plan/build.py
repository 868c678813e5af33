"""Builds the plan of a checked pipeline: sizes every ring without touching a pixel."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Protocol

from edgert.errors import Fault, PipelineError, UserError
from edgert.models.describe import ModelReader
from edgert.pipeline.check import Checked, in_order
from edgert.pipeline.document import Document
from edgert.pipeline.graph import cycles, edges, order, streams
from edgert.plan.aside import Aside, Way, find_aside
from edgert.plan.devices import requested, requests_of, turns_of, unknown_devices
from edgert.plan.files import overwrite_faults
from edgert.plan.given import faults_of
from edgert.plan.links import drops, edge_name, links_of
from edgert.plan.pace import frame_interval_ms
from edgert.plan.placement import Placement, place
from edgert.plan.ports import merge_ports
from edgert.plan.replicas import Replica, replicas_of
from edgert.plan.restart import RestartPolicy
from edgert.plan.rings import RingPlanner
from edgert.plan.structs import Plan, StagePlan, WorkerPlan
from edgert.plan.swaps import swap_faults
from edgert.profiles.apply import NOTHING_KNOWN, Known
from edgert.stages.base import PlanContext, Stage
from edgert.stages.registry import BUILT_IN
from edgert.tensor import PortSpec
from edgert.transport.ledger import LedgerLayout


class StageClasses(Protocol):
    """Where classes of stages come from (``stages/registry.py``)."""

    def stage_class(self, kind: str) -> type[Stage]:
        """Return the class of a kind."""
        ...


def build_plan(
    document: Document,
    checked: Checked,
    classes: StageClasses,
    models: ModelReader,
    known: Known = NOTHING_KNOWN,
) -> Plan:
    """Return the plan of a pipeline; ``known`` is what a device profile says of the machine.

    Raises:
        PipelineError: What ``check`` found, and stages that cannot work with what arrives, files
            that are missing, cores that are impossible: all of it in one run.
    """
    builder = _Builder(document, checked, classes, models, known)
    faults = in_order([*checked.faults, *builder.survey()])
    if faults:
        raise PipelineError(list(faults))
    return builder.build()


def find_faults(
    document: Document,
    checked: Checked,
    classes: StageClasses,
    models: ModelReader,
    known: Known = NOTHING_KNOWN,
) -> tuple[Fault, ...]:
    """Return what ``check`` found and what planning finds, as far as it can go, in file order."""
    survey = _Builder(document, checked, classes, models, known).survey()
    return in_order([*checked.faults, *survey])


class _Builder:
    def __init__(
        self,
        document: Document,
        checked: Checked,
        classes: StageClasses,
        models: ModelReader,
        known: Known,
    ) -> None:
        self._document, self._known = document, known
        self._checked = checked
        self._spec = document.spec
        self._options: Mapping[str, Any] = checked.options
        self._classes = {
            name: classes.stage_class(stage.kind)
            for name, stage in self._spec.stages.items()
            if name in checked.contracts
        }
        self._models = models
        self._order = () if cycles(self._spec) else order(self._spec)
        reached = streams(self._spec, checked.contracts)
        sources = [name for name, found in checked.contracts.items() if found.is_source]
        self._streams = tuple(sources)
        self._reached = {
            name: tuple(sources.index(source) for source in found)
            for name, found in reached.items()
        }
        self._ports: dict[str, dict[str, PortSpec]] = {}
        self._inputs: dict[str, dict[str, PortSpec]] = {}
        self._faults: list[Fault] = []
        self._placed: dict[str, Placement] = {}

    def survey(self) -> list[Fault]:
        """Let every stage say what it gives, as far as the file is sound; return the faults."""
        self._placed = self._placements()
        for name in self._order:
            if name in self._options and not self._is_faulty(name):
                self._plan_stage(name)
        workers = self._by_worker().values()
        swaps = swap_faults(self._document, self._options, self._classes, workers)
        overwrites = overwrite_faults(self._document, self._checked.contracts)
        return [*self._faults, *swaps, *overwrites]

    def _is_faulty(self, name: str) -> bool:
        """Whether ``check`` said something of a stage, or of one that it names (``for:``).

        What follows from that need not be told.
        """
        named = {name, *map(str, self._spec.stages[name].settings.values())}
        begins = tuple(f"stage '{one}'" for one in named)
        return any(fault.place.startswith(begins) for fault in self._checked.faults)

    def build(self) -> Plan:
        """Return the plan after a survey without faults."""
        leaves = [name for name in self._order if not self._classes[name].outputs]
        planner = self._planner(leaves)
        rings = tuple(ring for name in self._order for ring in planner.rings_of(name))
        workers = tuple(self._workers(planner, leaves))
        devices = requested(planner.replicas)
        return Plan(
            name=self._spec.name,
            folder=str(self._document.folder),
            in_flight=self._spec.limits.in_flight,
            streams=self._streams,
            leaves=tuple(
                tuple(n for n, leaf in enumerate(leaves) if leaf in planner.aside.answering[stream])
                for stream in self._streams
            ),
            workers=workers,
            rings=rings,
            ledger=LedgerLayout(
                stages=tuple(stage.name for worker in workers for stage in worker.stages),
                edges={edge.name: ring.slots for ring in rings for edge in ring.edges},
                streams=dict.fromkeys(self._streams, self._spec.limits.in_flight),
            ),
            requested=devices,
            requests=requests_of(planner.replicas, self._ports),
            unknown=unknown_devices(devices),
            profile=self._known.profile,
            turns=turns_of(self._spec, planner.replicas, self._options),
            require=self._spec.limits.require,
        )

    def _plan_stage(self, name: str) -> None:
        """Let a stage say what it gives; a fault is noted, and stages behind it are left out."""
        spec = self._spec.stages[name]
        if any(link.port not in self._ports.get(link.stage, {}) for link in links_of(spec)):
            return
        context = self._context(name)
        try:
            self._inputs[name] = {
                port: merge_ports(
                    [self._ports[link.stage][link.port] for link in links],
                    f"{context.place}, input '{port}'",
                )
                for port, links in spec.inputs.items()
            }
            given = self._classes[name].plan(self._options[name], self._inputs[name], context)
        except UserError as error:
            self._note(name, error)
        except (Exception, SystemExit) as error:
            if spec.kind in BUILT_IN:
                raise  # a bug of ours
            self._note_author(name, f"raised {type(error).__name__} in its plan(): {error}")
        else:
            faults = list(faults_of(given, self._classes[name].outputs))
            for fault in faults:
                self._note_author(name, f"is wrong in its plan(): {fault}")
            if not faults:
                self._ports[name] = given

    def _note_author(self, name: str, fault: str) -> None:
        said = f"kind '{self._spec.stages[name].kind}' {fault}"
        self._note(name, UserError(f"stage '{name}'", said, "Mend the stage, or ask its author"))

    def _context(self, name: str) -> PlanContext:
        sources = tuple(self._streams[stream] for stream in self._reached[name])
        return PlanContext(
            name=name,
            place=f"stage '{name}'",
            folder=str(self._document.folder),
            models=self._models,
            stages=self._options,
            streams=sources,
            in_flight=self._spec.limits.in_flight,
            threads=self._threads(name),
            frame_interval_ms=frame_interval_ms(sources, self._classes, self._ports),
        )

    def _threads(self, name: str) -> int:
        placement = self._placed.get(self._spec.stages[name].worker or name)
        if placement is None or not self._classes[name].uses_all_cores:
            return 1
        # Replicas share their cores.
        return max(1, placement.threads // self._spec.stages[name].replicas)

    def _note(self, name: str, error: UserError, key: str = "") -> None:
        loc = ("stages", name, key) if key else ("stages", name)
        self._faults += [self._document.located(loc, fault) for fault in error.faults]

    def _placements(self) -> dict[str, Placement]:
        """Return the placement of each worker, by its name."""
        found = {}
        for worker, names in self._by_worker().items():
            try:
                stages = [(name, self._spec.stages[name]) for name in names]
                found[worker] = place(stages, self._known)
            except UserError as error:
                self._note(names[0], error, "cores")
        return found

    def _by_worker(self) -> dict[str, list[str]]:
        workers: dict[str, list[str]] = {}
        for name in self._order:
            workers.setdefault(self._spec.stages[name].worker or name, []).append(name)
        return workers

    def _restart_of(self, names: list[str]) -> RestartPolicy:
        """Return the file's policy with what stages of this worker replace of it."""
        own: dict[str, Any] = {}
        for name in names:
            own |= self._spec.stages[name].restart.model_dump(exclude_unset=True)
        return RestartPolicy(**{**self._spec.restart.model_dump(), **own})

    def _planner(self, leaves: list[str]) -> RingPlanner:
        spec = self._spec
        return RingPlanner(
            spec=spec,
            replicas={
                name: replicas_of(name, spec.stages[name], self._options[name])
                for name in self._order
            },
            streams=self._reached,
            ports=self._ports,
            held={name: self._held(name) for name in self._order},
            aside=self._find_aside(leaves),
        )

    def _workers(self, planner: RingPlanner, leaves: list[str]) -> Iterator[WorkerPlan]:
        for worker, names in self._by_worker().items():
            placement = self._placed[worker]
            for shares in zip(*(planner.replicas[name] for name in names), strict=True):
                stages = tuple(
                    self._stage(name, share, planner, leaves)
                    for name, share in zip(names, shares, strict=True)
                )
                called = shares[0].name if shares[0].is_one_of_several else worker
                restart = self._restart_of(names)
                yield WorkerPlan(called, stages, placement.cores, placement.why, restart)

    def _stage(
        self, name: str, share: Replica, planner: RingPlanner, leaves: list[str]
    ) -> StagePlan:
        read = planner.read_ports(name)
        return StagePlan(
            name=share.name,
            kind=self._spec.stages[name].kind,
            settings=share.settings,
            inputs=planner.inputs_of(name, share),
            outputs={port: f"{share.name}.{port}" for port in read},
            input_ports=self._inputs[name],
            output_ports={port: self._ports[name][port] for port in read},
            streams=self._reached[name],
            threads=self._threads(name),
            leaf=leaves.index(name) if name in leaves else -1,
        )

    def _find_aside(self, leaves: list[str]) -> Aside:
        ways = [
            Way(
                edge_name(edge.link.stage, edge.link.port, edge.reader, edge.input),
                edge.link.stage,
                edge.reader,
                drops(edge.link),
            )
            for edge in edges(self._spec)
        ]
        sources = {
            name: [self._streams[stream] for stream in found]
            for name, found in self._reached.items()
        }
        return find_aside(ways, sources, leaves)

    def _held(self, name: str) -> int:
        return self._classes[name].frames_held(self._options[name], self._context(name))

"""The plan: everything that is decided before a process is started, as frozen data.

It holds only plain values, so that a worker's part travels to the worker as msgpack and
``edgert plan --format json`` prints the whole.
"""

from __future__ import annotations

from typing import Any

import msgspec

from edgert.plan.restart import RestartPolicy
from edgert.profiles.use import ProfileUse
from edgert.tensor import PortSpec
from edgert.transport.ledger import LedgerLayout
from edgert.transport.ring import RingPlan


class StagePlan(msgspec.Struct, frozen=True):
    """One stage.

    Attributes:
        name: Its name in the file.
        kind: Its kind.
        settings: Those of its options that the file has, checked, as plain values.
        inputs: Input port -> names of the edges that feed it.
        outputs: Output port -> name of its ring; ports nobody reads are absent.
        input_ports: What arrives on each input port.
        output_ports: What each connected output port carries.
        streams: Numbers of the streams that pass it; a source has its own alone.
        threads: Threads for its libraries.
        leaf: Its number among the leaves, -1 for stages with outputs.
    """

    name: str
    kind: str
    settings: dict[str, Any]
    inputs: dict[str, tuple[str, ...]]
    outputs: dict[str, str]
    input_ports: dict[str, PortSpec]
    output_ports: dict[str, PortSpec]
    streams: tuple[int, ...]
    threads: int
    leaf: int = -1

    @property
    def is_source(self) -> bool:
        """Whether frames begin here."""
        return not self.inputs


class WorkerPlan(msgspec.Struct, frozen=True):
    """One process: the stages it runs, in an order in which writers come before readers.

    Attributes:
        name: As in the file, else the stage's name.
        stages: Its stages.
        cores: Cores it is pinned to.
        placement: Why these cores, for people.
        restart: What happens when it dies or hangs.
    """

    name: str
    stages: tuple[StagePlan, ...]
    cores: tuple[int, ...]
    placement: str
    restart: RestartPolicy = RestartPolicy()

    @property
    def stage_names(self) -> frozenset[str]:
        """Names of its stages."""
        return frozenset(stage.name for stage in self.stages)


class Turns(msgspec.Struct, frozen=True):
    """Limits of devices over all stages, and who comes first where several wait.

    Attributes:
        limits: Device -> inferences that may be under way on it at once.
        ranks: Stage that runs a model -> its rank, the lower the more urgent; empty where no
            device has a limit.
    """

    limits: dict[str, int] = {}
    ranks: dict[str, int] = {}


class Plan(msgspec.Struct, frozen=True):
    """A whole pipeline, ready to be started.

    Attributes:
        name: Name of the pipeline.
        folder: Folder that relative paths of the file start from.
        in_flight: Frames per stream between its source and the leaves.
        streams: Name of each stream by its number.
        leaves: Numbers of the leaves that each stream reaches, by its number.
        workers: The processes.
        rings: The rings.
        ledger: How the ledger is divided.
        requested: Stage -> devices asked for, in order.
        requests: Stage -> inferences that it keeps in flight.
        turns: Limits of devices.
        require: ``all`` where every camera must be there when the run begins, else ``any``.
        unknown: What is not known before the run, for people.
        profile: The device profile, and what it filled in; None where none matches.
    """

    name: str
    folder: str
    in_flight: int
    streams: tuple[str, ...]
    leaves: tuple[tuple[int, ...], ...]
    workers: tuple[WorkerPlan, ...]
    rings: tuple[RingPlan, ...]
    ledger: LedgerLayout
    requested: dict[str, tuple[str, ...]]
    requests: dict[str, int] = {}
    unknown: tuple[str, ...] = ()
    profile: ProfileUse | None = None
    turns: Turns = Turns()
    require: str = "any"

    @property
    def shared_bytes(self) -> int:
        """Bytes of shared memory that the run reserves."""
        return sum(ring.nbytes for ring in self.rings) + self.ledger.nbytes

    def stages(self) -> tuple[StagePlan, ...]:
        """Return every stage."""
        return tuple(stage for worker in self.workers for stage in worker.stages)

    def worker_of(self, stage: str) -> WorkerPlan:
        """Return the worker that runs a stage."""
        return next(worker for worker in self.workers if stage in worker.stage_names)


class TrialOrder(msgspec.Struct, frozen=True):
    """A stage of an heir that has to show what it does before it takes over.

    Attributes:
        stage: The stage.
        readers: Who makes detections of its outputs, as it runs now and as it will; empty where
            nobody does: then the outputs themselves are compared.
    """

    stage: str
    readers: tuple[StagePlan, ...] = ()


class WorkerOrder(msgspec.Struct, frozen=True):
    """What a worker is told when it is started: its part of the plan, and how to speak up.

    Attributes:
        worker: Its stages.
        rings: The rings it writes or reads.
        streams: Name of each stream by its number.
        leaves: Numbers of the leaves that each stream reaches.
        ledger: How the ledger is divided.
        control: ZeroMQ address of the supervisor.
        folder: Folder that relative paths start from.
        max_frames: Frames after which each source of this worker stops; 0 for no limit.
        log_level: Level by name.
        turns: Limits of devices.
        fd_keys: What each fd that comes along is, in order (``runtime/wiring.py``).
        identity: Its name on the control channel: one for each start.
        leaf_names: Name of each leaf by its number.
        restarts: How often it has been started again; then it goes on where the last one stopped.
        is_heir: Whether it opens its stages beside the process whose place it takes.
        set_aside: Stage, stream and sequence of frames that are not tried again.
        refused: Stage -> device -> why it refused, of earlier starts.
        lost: Stage -> device -> how it failed while it ran, the last one last.
        require: As of the plan.
        trials: Stages of an heir that are tried before it takes over.
    """

    worker: WorkerPlan
    rings: tuple[RingPlan, ...]
    streams: tuple[str, ...]
    leaves: tuple[tuple[int, ...], ...]
    ledger: LedgerLayout
    control: str
    folder: str
    max_frames: int
    log_level: str
    fd_keys: tuple[str, ...]
    identity: str
    leaf_names: tuple[str, ...]
    turns: Turns = Turns()
    restarts: int = 0
    is_heir: bool = False
    set_aside: tuple[tuple[str, int, int], ...] = ()
    refused: dict[str, dict[str, str]] = {}
    lost: dict[str, dict[str, str]] = {}
    require: str = "any"
    trials: tuple[TrialOrder, ...] = ()

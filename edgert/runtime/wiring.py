"""Every fd of a run, by key; and the ends of rings that a process builds from the ones it got.

    ledger                          the ledger, writable
    ring/NAME/write, ring/NAME/read the segment of a ring, and the same read-only
    free/NAME/r, free/NAME/w        slots on their way back to the writer
    edge/NAME/r, edge/NAME/w        tokens on their way to a reader
    gate/STREAM/r, gate/STREAM/w    DONE tokens on their way to a source
    stack/WORKER                    where a worker that hangs writes its stack (``watch.py``)

The supervisor keeps every one of them open, so that no death of a worker loses a token.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby
from typing import Protocol

from edgert.errors import ResourceError
from edgert.plan.structs import Plan, StagePlan, WorkerPlan
from edgert.runtime.turns import create_turns, keys_for_turns
from edgert.transport.dispatch import Dispatcher, Replica
from edgert.transport.edge import EdgeWriter
from edgert.transport.join import Reader
from edgert.transport.ledger import Ledger, LedgerLayout
from edgert.transport.merge import MergedReader
from edgert.transport.queue import LocalQueue, PipeQueue, TokenQueue, make_pipe
from edgert.transport.reader import RingReader
from edgert.transport.ring import RingPlan, RingWriter, Way
from edgert.transport.segment import create_segment, map_segment, reopen_read_only

Fds = Mapping[str, int]

_SPARE_FDS = 32


class HasRings(Protocol):
    """A plan or a worker's order: what wiring needs to know."""

    @property
    def rings(self) -> tuple[RingPlan, ...]:
        """The rings."""
        ...

    @property
    def streams(self) -> tuple[str, ...]:
        """Names of the streams."""
        ...

    @property
    def ledger(self) -> LedgerLayout:
        """How the ledger is divided."""
        ...


def _see_room_for(count: int) -> None:
    """Raise OSError where so many files more cannot be open: sockets, signals, the zygote."""
    with contextlib.ExitStack() as spare:
        for _ in range(count):
            spare.callback(os.close, os.open(os.devnull, os.O_RDONLY))


def create_all(plan: Plan) -> dict[str, int]:
    """Create every segment and pipe of a run.

    Raises:
        ResourceError: There is not that much shared memory.
    """
    fds = {"ledger": create_segment("ledger", plan.ledger.nbytes)}
    try:
        for ring in plan.rings:
            fds[f"ring/{ring.name}/write"] = create_segment(ring.name, ring.nbytes)
            fds[f"ring/{ring.name}/read"] = reopen_read_only(fds[f"ring/{ring.name}/write"])
            _add_pipe(fds, f"free/{ring.name}")
            for edge in ring.edges:
                _add_pipe(fds, f"edge/{edge.name}")
        for stream in plan.streams:
            _add_pipe(fds, f"gate/{stream}")
        create_turns(plan.turns, fds)
        for worker in plan.workers:
            fds[f"stack/{worker.name}"] = os.memfd_create("stack", os.MFD_CLOEXEC)
        _see_room_for(_SPARE_FDS)
    except OSError as error:
        close_all(fds)
        raise ResourceError(
            f"pipeline '{plan.name}'",
            f"its rings cannot be made ({error.strerror})",
            "Raise the limit of open files (ulimit -n)",
        ) from error
    except BaseException:
        close_all(fds)
        raise
    return fds


def _add_pipe(fds: dict[str, int], key: str) -> None:
    fds[f"{key}/r"], fds[f"{key}/w"] = make_pipe()


def close_all(fds: Fds) -> None:
    """Close every fd."""
    for fd in fds.values():
        os.close(fd)


def keys_for(plan: Plan, worker: WorkerPlan) -> tuple[str, ...]:
    """Return the keys of the fds that a worker needs, and no others."""
    keys = {"ledger", f"stack/{worker.name}", *keys_for_turns(plan.turns, worker.stages)}
    names = worker.stage_names
    for ring in plan.rings:
        writes = ring.writer in names
        reads = [edge for edge in ring.edges if edge.reader in names]
        if writes:
            keys |= {f"ring/{ring.name}/write", f"free/{ring.name}/r", f"free/{ring.name}/w"}
            for edge in ring.edges:
                keys |= {f"edge/{edge.name}/r", f"edge/{edge.name}/w"}
        if reads:
            keys |= {f"ring/{ring.name}/read", f"free/{ring.name}/w"}
            keys |= {f"edge/{edge.name}/r" for edge in reads}
    for stage in worker.stages:
        if stage.is_source:
            keys.add(f"gate/{plan.streams[stage.streams[0]]}/r")
        if stage.leaf >= 0:
            keys |= {
                f"gate/{plan.streams[stream]}/w"
                for stream in stage.streams
                if stage.leaf in plan.leaves[stream]
            }
    return tuple(sorted(keys))


def rings_for(plan: Plan, worker: WorkerPlan) -> tuple[RingPlan, ...]:
    """Return the rings that a worker writes or reads."""
    names = worker.stage_names
    return tuple(
        ring
        for ring in plan.rings
        if ring.writer in names or any(edge.reader in names for edge in ring.edges)
    )


class Wiring:
    """Builds one process's ends of the rings.

    Args:
        order: The rings, streams and the ledger's layout.
        fds: The fds this process has, by key.
        local: Names of the stages in this process: edges between them need no pipe.
    """

    def __init__(self, order: HasRings, fds: Fds, local: frozenset[str]) -> None:
        self._rings = {ring.name: ring for ring in order.rings}
        self._edges = {edge.name: (ring, edge) for ring in order.rings for edge in ring.edges}
        self._streams = order.streams
        self._fds = fds
        self._local = local
        self._local_queues: dict[str, LocalQueue] = {}
        self.ledger = Ledger(map_segment(fds["ledger"], writable=True), order.ledger)

    def writer(self, ring_name: str) -> RingWriter:
        """Return the writer's end of a ring."""
        ring = self._rings[ring_name]
        memory = map_segment(self._fds[f"ring/{ring.name}/write"], writable=True)
        return RingWriter(ring, memory, self._free(ring), list(self._ways(ring)))

    def reader(self, edge_name: str) -> RingReader:
        """Return the reader's end of an edge."""
        ring, edge = self._edges[edge_name]
        memory = map_segment(self._fds[f"ring/{ring.name}/read"], writable=False)
        block = self.ledger.edge(edge_name)
        return RingReader(edge, ring, memory, self._ready(ring, edge_name), self._free(ring), block)

    def reader_ports(self, stage: StagePlan) -> dict[str, list[Reader]]:
        """Return the readers of every input port of a stage."""
        return {port: list(self._readers(edges)) for port, edges in stage.inputs.items()}

    def done_queue(self, stream: int) -> PipeQueue:
        """Return the queue of DONE tokens of a stream: the end or ends that this process has."""
        key = f"gate/{self._streams[stream]}"
        return PipeQueue(self._fds.get(f"{key}/r", -1), self._fds.get(f"{key}/w", -1))

    def _ways(self, ring: RingPlan) -> Iterator[Way]:
        """Yield where a ring's frames go: the edges of replicas are one way together."""
        for shared, edges in groupby(ring.edges, lambda edge: edge.shared):
            ends = {
                edge.reader: EdgeWriter(
                    edge, self._ready(ring, edge.name), self.ledger.edge(edge.name)
                )
                for edge in edges
            }
            if shared:
                yield Dispatcher([self._replica(*each) for each in ends.items()])
            else:
                yield from ends.values()

    def _replica(self, reader: str, end: EdgeWriter) -> Replica:
        names = [
            name
            for name in self.ledger.layout.edges
            if name.partition("->")[2].startswith(f"{reader}.")
        ]
        return Replica(end, self.ledger.stage(reader), [self.ledger.edge(name) for name in names])

    def _readers(self, edge_names: Iterable[str]) -> Iterator[Reader]:
        """Yield the readers of one port: the edges of replicas, put in order, are one together."""
        for merge, names in groupby(edge_names, lambda name: self._edges[name][1].merge):
            readers = [self.reader(name) for name in names]
            if merge:
                yield MergedReader(readers)
            else:
                yield from readers

    def _ready(self, ring: RingPlan, edge_name: str) -> TokenQueue:
        edge = self._edges[edge_name][1]
        if edge.reader in self._local and ring.writer in self._local:
            return self._local_queues.setdefault(f"edge/{edge_name}", LocalQueue())
        key = f"edge/{edge_name}"
        return PipeQueue(self._fds[f"{key}/r"], self._fds.get(f"{key}/w", -1))

    def _free(self, ring: RingPlan) -> TokenQueue:
        stages = {ring.writer, *(edge.reader for edge in ring.edges)}
        if stages <= self._local:
            return self._local_queues.setdefault(f"free/{ring.name}", LocalQueue())
        key = f"free/{ring.name}"
        return PipeQueue(self._fds.get(f"{key}/r", -1), self._fds[f"{key}/w"])

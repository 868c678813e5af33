"""The rings of a plan: who writes them, who reads them, and how many slots each has."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from edgert.pipeline.graph import Edge, edges
from edgert.pipeline.spec import PipelineSpec
from edgert.plan.aside import Aside
from edgert.plan.links import edge_name
from edgert.plan.replicas import Replica, Replicas
from edgert.plan.sizes import held_by, slots_of
from edgert.tensor import PortSpec
from edgert.transport.edge import EdgePlan
from edgert.transport.ring import RingPlan
from edgert.transport.slot import SlotLayout


@dataclass(frozen=True, slots=True)
class RingPlanner:
    """Plans the rings of one pipeline.

    Attributes:
        spec: The pipeline.
        replicas: The workers' shares of each stage.
        streams: Numbers of the streams that reach each stage.
        ports: What each output port of each stage carries.
        held: Frames that one worker of each stage works on at once.
        aside: What lies aside of the main way.
    """

    spec: PipelineSpec
    replicas: Replicas
    streams: Mapping[str, tuple[int, ...]]
    ports: Mapping[str, Mapping[str, PortSpec]]
    held: Mapping[str, int]
    aside: Aside

    def read_ports(self, name: str) -> list[str]:
        """Return the output ports of a stage that somebody reads, in the stage's order."""
        read = {edge.link.port for edge in edges(self.spec) if edge.link.stage == name}
        return [port for port in self.ports[name] if port in read]

    def rings_of(self, name: str) -> Iterator[RingPlan]:
        """Yield the rings that a stage's workers write."""
        in_flight = self.spec.limits.in_flight
        frames = None if name in self.aside.stages else in_flight * len(self.streams[name])
        for writer in self.replicas[name]:
            for port in self.read_ports(name):
                layout = SlotLayout.of(self.ports[name][port])
                readers = tuple(self._edges_from(writer, name, port))
                slots = slots_of(readers, self.held[name], frames)
                yield RingPlan(f"{writer.name}.{port}", slots, layout, readers)

    def inputs_of(self, name: str, reader: Replica) -> dict[str, tuple[str, ...]]:
        """Return the names of the edges that feed each input port of one of a stage's workers."""
        return {
            port: tuple(
                edge_name(writer.name, link.port, reader.name, port)
                for link in links
                for writer in self.replicas[link.stage]
            )
            for port, links in self.spec.stages[name].inputs.items()
        }

    def _edges_from(self, writer: Replica, name: str, output: str) -> Iterator[EdgePlan]:
        for edge in edges(self.spec):
            if (edge.link.stage, edge.link.port) == (name, output):
                for reader in self.replicas[edge.reader]:
                    yield self._edge(writer, edge, reader)

    def _edge(self, writer: Replica, edge: Edge, reader: Replica) -> EdgePlan:
        link = edge.link
        streams = self.streams[link.stage]
        merges = writer.is_one_of_several and not reader.is_one_of_several
        waits = merges or len(self.spec.stages[edge.reader].inputs) > 1
        return EdgePlan(
            name=edge_name(writer.name, link.port, reader.name, edge.input),
            reader=reader.name,
            port=edge.input,
            depth=link.queue.slots,
            drops=link.queue.when_full == "drop-oldest",
            held=held_by(
                self.held[edge.reader], self.spec.limits.in_flight, len(streams), waits=waits
            ),
            streams=streams,
            aside=edge_name(link.stage, link.port, edge.reader, edge.input) in self.aside.edges,
            shared=edge.reader if reader.is_one_of_several else "",
            merge=link.stage if merges else "",
            rejects=link.queue.when_full == "reject",
            max_age_ns=round((link.queue.max_age_ms or 0) * 1e6),
            priority=link.priority,
        )

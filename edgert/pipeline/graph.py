"""The graph that the edges of a pipeline make: its order, its cycles, its streams."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from edgert.pipeline.contract import StageContract
from edgert.pipeline.marks import Loc
from edgert.pipeline.spec import LinkSpec, PipelineSpec

Contracts = Mapping[str, StageContract]
ANY = "*"  # the kind of data of a port that takes any


@dataclass(frozen=True, slots=True)
class Edge:
    """One edge.

    Attributes:
        reader: Name of the stage that reads.
        input: Name of the port it reads with.
        index: Number of the edge on that port.
        link: What it reads.
    """

    reader: str
    input: str
    index: int
    link: LinkSpec

    @property
    def loc(self) -> Loc:
        """Key path of the edge in the file."""
        return ("stages", self.reader, "inputs", self.input, self.index)


def edges(spec: PipelineSpec) -> Iterator[Edge]:
    """Yield every edge, in the order of the file."""
    for reader, stage in spec.stages.items():
        for port, links in stage.inputs.items():
            for index, link in enumerate(links):
                yield Edge(reader, port, index, link)


def upstream(spec: PipelineSpec) -> dict[str, list[str]]:
    """Return the stages that each stage reads from, without those that do not exist."""
    found: dict[str, dict[str, None]] = {name: {} for name in spec.stages}
    for edge in edges(spec):
        if edge.link.stage in spec.stages and edge.link.stage != edge.reader:
            found[edge.reader][edge.link.stage] = None
    return {name: list(stages) for name, stages in found.items()}


def order(spec: PipelineSpec) -> tuple[str, ...]:
    """Return the stages so that each comes after those it reads from, else as in the file.

    Raises:
        ValueError: There is a cycle; ``check`` tells it as a fault.
    """
    done, left = _sorted(upstream(spec))
    if left:
        raise ValueError(f"a cycle among {', '.join(left)}")
    return tuple(done)


def cycles(spec: PipelineSpec) -> list[tuple[str, ...]]:
    """Return cycles that share no stage; each begins with its first stage in the file."""
    reads = upstream(spec)
    rank = {name: number for number, name in enumerate(spec.stages)}
    found = []
    while left := _sorted(reads)[1]:
        cycle = _cycle(left)
        found.append(_from_first(cycle, rank))
        reads = {
            name: [other for other in others if other not in cycle]
            for name, others in left.items()
            if name not in cycle
        }
    return found


def streams(spec: PipelineSpec, contracts: Contracts) -> dict[str, tuple[str, ...]]:
    """Return the sources whose frames reach each stage, in the order of the file.

    A source reaches itself. Stages in a cycle and stages of unknown kind pass on what they get.
    """
    sources = [name for name in spec.stages if _is_source(name, contracts)]
    rank = {name: number for number, name in enumerate(sources)}
    reads = upstream(spec)
    done, left = _sorted(reads)
    reached: dict[str, set[str]] = {name: set() for name in spec.stages}
    for name in [*done, *left]:
        own = {name} if name in rank else set()
        reached[name] = own.union(*(reached[other] for other in reads[name]))
    return {name: tuple(sorted(found, key=rank.__getitem__)) for name, found in reached.items()}


def _is_source(name: str, contracts: Contracts) -> bool:
    return name in contracts and contracts[name].is_source


def _sorted(reads: Mapping[str, list[str]]) -> tuple[list[str], dict[str, list[str]]]:
    """Return the stages in order, and those that wait for a cycle with what they wait for."""
    readers: dict[str, list[str]] = {name: [] for name in reads}
    waiting = {name: len(others) for name, others in reads.items()}
    for name, others in reads.items():
        for other in others:
            readers[other].append(name)
    done = [name for name, count in waiting.items() if not count]
    for name in done:  # grows while it is walked
        for reader in readers[name]:
            waiting[reader] -= 1
            if not waiting[reader]:
                done.append(reader)
    left = set(reads) - set(done)
    return done, {n: [o for o in others if o in left] for n, others in reads.items() if n in left}


def _cycle(left: Mapping[str, list[str]]) -> list[str]:
    """Walk upstream until a stage comes again; each of ``left`` waits for another of them."""
    path = [next(iter(left))]
    while path[-1] not in path[:-1]:
        path.append(left[path[-1]][0])
    return path[path.index(path[-1]) + 1 :][::-1]


def _from_first(cycle: list[str], rank: Mapping[str, int]) -> tuple[str, ...]:
    start = cycle.index(min(cycle, key=rank.__getitem__))
    return tuple(cycle[start:] + cycle[:start])

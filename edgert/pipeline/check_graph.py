"""Faults of the graph as a whole: cycles, outputs nobody reads, joins that could never complete."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from edgert.errors import Fault
from edgert.pipeline.document import Document
from edgert.pipeline.graph import ANY, Contracts, cycles, edges, streams
from edgert.pipeline.spec import LinkSpec

MAX_LEAVES = 64


def check_cycles(document: Document, contracts: Contracts) -> Iterator[Fault]:
    """Find cycles."""
    for cycle in cycles(document.spec):
        if any(name in contracts and contracts[name].is_source for name in cycle):
            continue  # a source that reads: told already
        path = " -> ".join([*cycle, cycle[0]])
        fault = f"it is part of a cycle: {path}"
        loc = ("stages", cycle[0], "inputs")
        yield document.fault(loc, f"stage '{cycle[0]}'", fault, "Remove one of these edges")


def check_ends(document: Document, contracts: Contracts) -> Iterator[Fault]:
    """Find pipelines into which nothing comes, or out of which nothing goes."""
    if not any(contract.is_source for contract in contracts.values()):
        fault = "there is no source among the stages"
        yield document.fault(("stages",), "the pipeline", fault, "Add a stage such as source.video")
    if all(contract.outputs for contract in contracts.values()):
        fault = "there is no sink among the stages"
        yield document.fault(("stages",), "the pipeline", fault, "Add a stage such as sink.jsonl")


def check_unread(document: Document, contracts: Contracts) -> Iterator[Fault]:
    """Find stages that work for nobody, and outputs that must be read and are not."""
    if all(contract.outputs for contract in contracts.values()):
        return  # without a sink, the last stage's outputs are unread for that reason
    read = {edge.link.source for edge in edges(document.spec)}
    wanted = _wanted(document, contracts)
    for name, contract in contracts.items():
        unread = [port for port in contract.outputs if f"{name}.{port}" not in read]
        if ANY in wanted or any(contract.outputs[port] in wanted for port in unread):
            continue
        if unread and len(unread) == len(contract.outputs):
            outputs = ", ".join(f"{name}.{port}" for port in unread)
            fault = "nobody reads any of its outputs"
            mend = f"Read one of {outputs}, or remove the stage"
            yield document.fault(("stages", name), "", fault, mend)
            continue
        for port in unread:
            if port not in contract.optional:
                place = f"stage '{name}', output '{port}'"
                fault = "nobody reads this output, which must be read"
                yield document.fault(
                    ("stages", name), place, fault, f"Connect {name}.{port} to a stage"
                )


def _wanted(document: Document, contracts: Contracts) -> set[str]:
    """Return the kinds of data that broken or missing edges would bring.

    Who gives such data goes unread because of a fault that is told elsewhere.
    """
    wanted = set()
    for name, contract in contracts.items():
        inputs = document.spec.stages[name].inputs
        for port, kind in contract.inputs.items():
            links = inputs.get(port, ())
            is_missing = not links and port not in contract.optional
            if is_missing or not all(_fits(link, name, kind, contracts) for link in links):
                wanted.add(kind)
    return wanted


def _fits(link: LinkSpec, reader: str, kind: str, contracts: Contracts) -> bool:
    outputs = contracts[link.stage].outputs if link.stage in contracts else {}
    gives = outputs.get(link.port)
    return link.stage != reader and gives is not None and (ANY in {gives, kind} or gives == kind)


def check_unreached(document: Document, contracts: Contracts) -> Iterator[Fault]:
    """Find stages that are no source and read nothing, so that no frame ever comes."""
    for name, contract in contracts.items():
        has_open_inputs = all(port in contract.optional for port in contract.inputs)
        if not contract.is_source and has_open_inputs and not document.spec.stages[name].inputs:
            fault = "no frame ever reaches it: none of its inputs is connected"
            known = ", ".join(contract.inputs) or "none"
            yield document.fault(("stages", name), "", fault, f"Connect one of its inputs: {known}")


def check_joins(document: Document, contracts: Contracts) -> Iterator[Fault]:
    """Find joins whose inputs carry different streams, and inputs that carry one stream twice."""
    if cycles(document.spec):
        return
    reached = streams(document.spec, contracts)
    for name, stage in document.spec.stages.items():
        carried: dict[str, set[str]] = {}
        for port, links in stage.inputs.items():
            sets = [set(reached.get(link.stage, ())) for link in links]
            carried[port] = set().union(*sets)
            twice = _twice(sets)
            sources = [link.source for link in links]
            if twice and len(set(sources)) == len(sources):
                fault = f"frames of '{twice}' arrive on it by several of {', '.join(sources)}"
                mend = "Read each stream by one edge"
                yield document.fault(("stages", name, "inputs", port), "", fault, mend)
        yield from _unequal(document, name, carried)


def _twice(sets: list[set[str]]) -> str:
    seen: set[str] = set()
    for each in sets:
        if again := seen & each:
            return min(again)
        seen |= each
    return ""


def _unequal(document: Document, name: str, carried: dict[str, set[str]]) -> Iterator[Fault]:
    known = {port: found for port, found in carried.items() if found}
    if len({frozenset(found) for found in known.values()}) > 1:
        said = "; ".join(f"{port}: {', '.join(sorted(found))}" for port, found in known.items())
        fault = f"its inputs carry different streams, so that their frames never join ({said})"
        mend = "Let every input read the same sources"
        yield document.fault(("stages", name, "inputs"), f"stage '{name}'", fault, mend)


def check_leaves(document: Document, contracts: Contracts) -> Iterator[Fault]:
    """Find pipelines with more sinks than the flow gate can count."""
    leaves = [name for name, contract in contracts.items() if not contract.outputs]
    if len(leaves) > MAX_LEAVES:
        fault = f"{len(leaves)} sinks are too many"
        loc = ("stages", leaves[MAX_LEAVES])
        yield document.fault(loc, "the pipeline", fault, f"Use at most {MAX_LEAVES}")


GRAPH_CHECKS: tuple[Callable[[Document, Contracts], Iterator[Fault]], ...] = (
    check_cycles,
    check_ends,
    check_unread,
    check_unreached,
    check_joins,
    check_leaves,
)

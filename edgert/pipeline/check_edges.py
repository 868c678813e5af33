"""Faults of single edges: both ends are named, and what there is to connect to."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice

from edgert.errors import Fault
from edgert.pipeline.document import Document
from edgert.pipeline.graph import ANY, Contracts, Edge, edges
from edgert.pipeline.near import choices

OUTPUTS_SHOWN = 8


def check_writers(document: Document, contracts: Contracts) -> Iterator[Fault]:
    """Find edges from stages or outputs that there are not."""
    stages = document.spec.stages
    for edge in edges(document.spec):
        source, writer, port = edge.link.source, edge.link.stage, edge.link.port
        if edge.reader in contracts and contracts[edge.reader].is_source:
            continue  # it may have no edge at all: ``check_readers`` tells that
        if writer not in stages:
            fault = f"it reads '{source}', but there is no stage '{writer}'"
            mend = choices(writer, [name for name in stages if name != edge.reader], "Stages")
        elif writer == edge.reader:
            fault, mend = f"it reads its own output '{source}'", "Read another stage"
        elif writer in contracts and port not in contracts[writer].outputs:
            fault = f"it reads '{source}', but '{writer}' has no output '{port}'"
            mend = choices(port, contracts[writer].outputs, "Its outputs")
        else:
            continue
        yield document.fault(edge.loc, "", fault, mend)


def check_readers(document: Document, contracts: Contracts) -> Iterator[Fault]:
    """Find inputs that their stage's kind does not have."""
    for name, contract in contracts.items():
        inputs = document.spec.stages[name].inputs
        if contract.is_source and inputs:
            fault = f"{contract.kind} is a source and reads no stage"
            yield document.fault(("stages", name, "inputs"), "", fault, "Remove 'inputs'")
            continue
        for port in inputs:
            if port not in contract.inputs:
                fault = f"kind {contract.kind} has no input '{port}'"
                mend = choices(port, contract.inputs, "Its inputs")
                yield document.marks.fault(
                    ("stages", name, "inputs", port), fault, mend, at_key=True
                )


def check_required(document: Document, contracts: Contracts) -> Iterator[Fault]:
    """Find required inputs that nothing is connected to."""
    if not document.is_whole:
        return
    for name, contract in contracts.items():
        connected = document.spec.stages[name].inputs
        for port, kind in contract.inputs.items():
            if port in connected or port in contract.optional:
                continue
            mend = f"Add 'inputs: {{{port}: STAGE.PORT}}'{_outputs_of(kind, name, contracts)}"
            loc = ("stages", name, "inputs") if connected else ("stages", name)
            fault = "this input is required, and nothing is connected to it"
            yield document.fault(loc, f"stage '{name}', input '{port}'", fault, mend)


def check_port_kinds(document: Document, contracts: Contracts) -> Iterator[Fault]:
    """Find edges whose ends carry different kinds of data."""
    for edge in edges(document.spec):
        gives, takes = _ends(edge, contracts)
        if gives and takes and ANY not in (gives, takes) and gives != takes:
            fault = f"it takes {takes}, but '{edge.link.source}' gives {gives}"
            others = _outputs_of(takes, edge.reader, contracts)
            mend = f"Connect an output that gives {takes}{others}"
            yield document.fault(edge.loc, "", fault, mend)


def check_read_once(document: Document, _contracts: Contracts) -> Iterator[Fault]:
    """Find outputs that one input reads twice."""
    seen: set[tuple[str, str, str]] = set()
    for edge in edges(document.spec):
        key = (edge.reader, edge.input, edge.link.source)
        if key in seen:
            fault = f"it reads '{edge.link.source}' twice"
            yield document.fault(edge.loc, "", fault, "Remove one of the two")
        seen.add(key)


def _ends(edge: Edge, contracts: Contracts) -> tuple[str, str]:
    """Return the kinds of data that an edge's ends give and take; empty where not known."""
    writer, reader = contracts.get(edge.link.stage), contracts.get(edge.reader)
    gives = writer.outputs.get(edge.link.port, "") if writer else ""
    return gives, reader.inputs.get(edge.input, "") if reader else ""


def _outputs_of(kind: str, reader: str, contracts: Contracts) -> str:
    """Return the outputs that give a kind of data: ``; there is camera.image``."""
    names = (
        f"{stage}.{port}"
        for stage, contract in contracts.items()
        if stage != reader
        for port, gives in contract.outputs.items()
        if ANY in (gives, kind) or gives == kind
    )
    shown = list(islice(names, OUTPUTS_SHOWN))
    return f"; there is {', '.join(shown)}" if shown else ""


EDGE_CHECKS: tuple[Callable[[Document, Contracts], Iterator[Fault]], ...] = (
    check_writers,
    check_readers,
    check_required,
    check_port_kinds,
    check_read_once,
)

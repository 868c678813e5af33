"""Faults of stages that run as several workers: ``replicas``, or ``balance`` of a kind that has it.

Frames are put back in order by their numbers, none of which may be missing: so no edge before such
a stage may drop, and none that reads it may take frames back that are waiting there.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from edgert.errors import Fault
from edgert.options import Options
from edgert.pipeline.contract import StageContract
from edgert.pipeline.document import Document
from edgert.pipeline.graph import Contracts, cycles, edges, streams, upstream
from edgert.pipeline.marks import Loc
from edgert.pipeline.spec import StageSpec


def check_replicas(document: Document, contracts: Contracts) -> Iterator[Fault]:
    """Find stages that cannot run as several workers, and edges that do not go with them."""
    replicated = []
    for name, stage in document.spec.stages.items():
        key = key_of(stage)
        if not key:
            continue
        loc: Loc = ("stages", name, key)
        why_not = _why_not(contracts[name])
        if why_not:
            fault = (
                f"kind {contracts[name].kind} {why_not}, so that one worker must see every frame"
            )
            yield document.fault(loc, "", fault, f"Remove '{key}'")
            continue
        replicated.append(name)
        for fault, mend in _flaws(stage):
            yield document.fault(loc, "", fault, mend)
    yield from _dropping(document, replicated)


def warn_idle(
    document: Document, options: Mapping[str, Options], contracts: Contracts
) -> Iterator[Fault]:
    """Warn of stages with more workers than there are frames for them."""
    reached = streams(document.spec, contracts)
    for name, made in options.items():
        stage = document.spec.stages[name]
        workers = max(stage.replicas, len(getattr(made, "balance", ())))
        frames = document.spec.limits.in_flight * max(1, len(reached[name]))
        if workers > frames:
            fault = f"{workers} workers can never all be busy with {frames} frames in flight"
            mend = "Set limits.in_flight to twice as many as there are workers, or have fewer"
            yield document.fault(("stages", name, key_of(stage)), "", fault, mend)


def key_of(stage: StageSpec) -> str:
    """Return the key that makes several workers of a stage; empty where there is one."""
    if stage.settings.get("balance"):
        return "balance"
    return "replicas" if stage.replicas > 1 else ""


def _why_not(contract: StageContract) -> str:
    if contract.is_source:
        return "is a source"
    if not contract.outputs:
        return "is a sink"
    return "" if contract.is_stateless else "is not one in which no frame depends on another"


def _flaws(stage: StageSpec) -> Iterator[tuple[str, str]]:
    if len(stage.inputs) > 1:
        yield "it joins several inputs", "Give the work that is to be shared a stage of one input"
    if stage.worker is not None:
        fault = f"its workers cannot be part of the worker '{stage.worker}'"
        yield fault, "Remove the key 'worker'"
    if stage.replicas > 1 and stage.settings.get("balance"):
        yield "'replicas' and 'balance' both say how many workers there are", "Remove one of them"


def _dropping(document: Document, replicated: Sequence[str]) -> Iterator[Fault]:
    """Find edges that drop before a stage of several workers, or at its outputs."""
    if cycles(document.spec):
        return
    before = {name: _all_upstream(document, name) for name in replicated}
    for edge in edges(document.spec):
        near = [name for name in replicated if edge.reader in before[name]]
        where = "behind"
        if not near and edge.link.stage in replicated:
            near, where = [edge.link.stage], "before"
        if near and edge.link.queue.when_full != "block":
            fault = (
                f"it drops frames, but stage '{near[0]}' {where} it has several workers, whose "
                "frames are put in order by their numbers"
            )
            mend = "Write 'when_full: block', or drop behind a stage of one worker"
            place = f"stage '{edge.reader}', input '{edge.input}'"
            yield document.fault((*edge.loc, "queue", "when_full"), place, fault, mend)


def _all_upstream(document: Document, name: str) -> set[str]:
    """Return a stage and all whose frames reach it."""
    reads = upstream(document.spec)
    found: set[str] = set()
    left = [name]
    while left:
        stage = left.pop()
        if stage not in found:
            found.add(stage)
            left += reads[stage]
    return found

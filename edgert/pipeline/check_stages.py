"""Faults of single stages: their kinds, their options, their workers."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from math import prod

from edgert.errors import Fault, UserError
from edgert.options import Options
from edgert.pipeline.contract import Kinds, StageContract
from edgert.pipeline.document import Document
from edgert.pipeline.graph import Contracts, streams
from edgert.pipeline.load import UNKNOWN_KIND
from edgert.pipeline.marks import Loc
from edgert.pipeline.spec import StageSpec
from edgert.pipeline.validate import Subject, later_key, validate

MANY_SHAPES = 8
COMMON_KEYS = tuple(StageSpec.model_fields)


def find_contracts(
    document: Document, kinds: Kinds
) -> tuple[dict[str, StageContract], list[Fault]]:
    """Return the contract of each stage whose kind there is, and a fault for every other."""
    contracts: dict[str, StageContract] = {}
    faults: list[Fault] = []
    for name, stage in document.spec.stages.items():
        if stage.kind == UNKNOWN_KIND and document.faults:
            continue  # a stand-in: its fault is told already
        try:
            contracts[name] = kinds.contract(stage.kind)
        except UserError as error:
            loc: Loc = ("stages", name, "kind")
            faults += [document.fault(loc, "", said.fault, said.mend) for said in error.faults]
    return contracts, faults


def read_options(
    document: Document, contracts: Contracts
) -> tuple[dict[str, Options], list[Fault]]:
    """Return the validated options of each stage, and every fault of them."""
    options: dict[str, Options] = {}
    faults: list[Fault] = []
    for name, stage in document.spec.stages.items():
        base: Loc = ("stages", name)
        contract = contracts.get(name)
        if contract is None:
            faults += _later_keys(document, base, stage)
            continue
        title = f"kind {contract.kind}"
        subject = Subject(stage.settings, base, document.marks, title, common_keys(contract))
        made, flaws = validate(contract.options, subject)
        # How keys go together is not judged where one of them is faulty already.
        is_faulty = any(fault.place.startswith(f"stage '{name}', ") for fault in document.faults)
        flaws = [flaw for flaw in flaws if flaw.loc != base or not is_faulty]
        faults += [flaw.told(document.marks) for flaw in flaws]
        if made is not None:
            options[name] = made
    return options, faults


def common_keys(contract: StageContract) -> tuple[str, ...]:
    """Return the keys that a stage may have beside those of its kind."""
    return tuple(key for key in COMMON_KEYS if key != "replicas" or contract.is_stateless)


def _later_keys(document: Document, base: Loc, stage: StageSpec) -> Iterator[Fault]:
    for key in stage.settings:
        said = later_key(key)
        if said:
            yield document.marks.fault((*base, key), *said, at_key=True)


def check_workers(document: Document) -> Iterator[Fault]:
    """Find workers whose stages want different cores."""
    stages_of: dict[str, list[str]] = defaultdict(list)
    for name, stage in document.spec.stages.items():
        if stage.worker is not None and stage.cores is not None:
            stages_of[stage.worker].append(name)
    for worker, names in stages_of.items():
        first = names[0]
        cores = document.spec.stages[first].cores
        for name in names[1:]:
            if document.spec.stages[name].cores != cores:
                fault = f"it shares the worker '{worker}' with '{first}', which has other cores"
                mend = f"Give both the same cores, or remove 'cores' from '{name}'"
                yield document.fault(("stages", name, "cores"), "", fault, mend)


def warn_in_flight(
    document: Document, options: Mapping[str, Options], contracts: Contracts
) -> Iterator[Fault]:
    """Warn of stages that could have more requests in flight than frames can reach them."""
    in_flight = document.spec.limits.in_flight
    reached = streams(document.spec, contracts)
    for name, made in options.items():
        requests = getattr(made, "requests", None)
        sources = max(1, len(reached[name]))
        if isinstance(requests, int) and requests > in_flight * sources:
            of = f" and {sources} streams" if sources > 1 else ""
            fault = f"{requests} requests can never be busy with limits.in_flight {in_flight}{of}"
            needed, most = -(-requests // sources), in_flight * sources
            mend = f"Set limits.in_flight to {needed} or more, or 'requests' to {most}"
            yield document.fault(("stages", name, "requests"), "", fault, mend)


def warn_batches(
    document: Document, options: Mapping[str, Options], contracts: Contracts
) -> Iterator[Fault]:
    """Warn of batches larger than all the frames that can reach their stage at once."""
    in_flight = document.spec.limits.in_flight
    reached = streams(document.spec, contracts)
    for name, made in options.items():
        size = getattr(getattr(made, "batch", None), "max_size", 0)
        frames = in_flight * len(reached[name])
        if frames and size > frames:
            fault = (
                f"a batch of {size} can never be full: with limits.in_flight {in_flight}, "
                f"{frames} frames may be on their way"
            )
            needed = -(-size // len(reached[name]))
            mend = f"Set limits.in_flight to {needed} or more, or max_size to {frames}"
            yield document.fault(("stages", name, "batch", "max_size"), "", fault, mend)


def warn_shapes(document: Document, options: Mapping[str, Options]) -> Iterator[Fault]:
    """Warn of models to be compiled for many shapes: each costs memory for the whole run."""
    for name, made in options.items():
        shape = getattr(made, "shape", None)
        if not isinstance(shape, dict):
            continue
        sizes = [size for each in shape.values() for size in each if isinstance(size, list)]
        count = prod(len(set(each)) for each in sizes)
        if count > MANY_SHAPES:
            fault = f"the model is compiled for {count} shapes, each of which keeps memory"
            mend = "Name fewer sizes: frames of a size in between can be padded"
            yield document.fault(("stages", name, "shape"), "", fault, mend)

"""Finds every fault of a pipeline that the file and the kinds' contracts tell, in one run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from edgert.errors import Fault, PipelineError
from edgert.options import Options
from edgert.pipeline.check_devices import check_devices, warn_shared_cores
from edgert.pipeline.check_edges import EDGE_CHECKS
from edgert.pipeline.check_graph import GRAPH_CHECKS
from edgert.pipeline.check_outputs import check_standard_output
from edgert.pipeline.check_replicas import check_replicas, warn_idle
from edgert.pipeline.check_stages import (
    check_workers,
    find_contracts,
    read_options,
    warn_batches,
    warn_in_flight,
    warn_shapes,
)
from edgert.pipeline.contract import Kinds, StageContract
from edgert.pipeline.document import Document


@dataclass(frozen=True, slots=True)
class Checked:
    """What a check found.

    Attributes:
        faults: Everything that keeps the pipeline from running, in the order of the file.
        warnings: What will run, but hardly as it was meant.
        options: Validated options by stage; stages with faults are absent.
        contracts: Contract of each stage's kind; stages of unknown kind are absent.
    """

    faults: tuple[Fault, ...]
    warnings: tuple[Fault, ...]
    options: Mapping[str, Options]
    contracts: Mapping[str, StageContract]

    def raise_faults(self) -> None:
        """Raise the faults, if there are any.

        Raises:
            PipelineError: All of them.
        """
        if self.faults:
            raise PipelineError(list(self.faults))


def check(document: Document, kinds: Kinds) -> Checked:
    """Return everything that is wrong with a pipeline, and what the plan needs of it.

    Args:
        document: The file, from ``load``, or from ``read`` with the faults it has already.
        kinds: The kinds of stage there are.
    """
    contracts, kind_faults = find_contracts(document, kinds)
    options, option_faults = read_options(document, contracts)
    faults = [*kind_faults, *option_faults, *check_workers(document)]
    for check_edge in EDGE_CHECKS:
        faults += check_edge(document, contracts)
    is_whole = document.is_whole and len(contracts) == len(document.spec.stages)
    for check_whole in (*GRAPH_CHECKS, check_replicas) if is_whole else ():
        faults += check_whole(document, contracts)
    if is_whole and len(options) == len(contracts):
        faults += check_devices(document, options)
    faults += check_standard_output(document, options)
    every = in_order([*document.faults, *_news(document.faults, faults)])
    warnings = (
        *document.warnings,
        *warn_in_flight(document, options, contracts),
        *warn_batches(document, options, contracts),
        *warn_shared_cores(document, options),
        *warn_shapes(document, options),
        *warn_idle(document, options, contracts),
    )
    return Checked(every, warnings, options, contracts)


def _news(known: tuple[Fault, ...], faults: list[Fault]) -> list[Fault]:
    """Leave out what is said of a value that is a fault already (it has no value to speak of)."""
    places = {(fault.line, fault.column) for fault in known if fault.line}
    return [fault for fault in faults if (fault.line, fault.column) not in places]


def in_order(faults: list[Fault]) -> tuple[Fault, ...]:
    """Return faults in the order of the file."""
    return tuple(sorted(faults, key=lambda fault: (fault.line, fault.column)))

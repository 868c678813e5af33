"""Stages whose successors have to show something before they take over (``swap:``)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from edgert.errors import Fault
from edgert.pipeline.document import Document
from edgert.stages.base import Stage
from edgert.stages.swap_options import SwapOptions


def bounds_of(options: Any) -> SwapOptions | None:
    """Return what an heir of a stage with these options has to keep to; None: it is not tried."""
    bounds = getattr(options, "swap", None)
    return bounds if isinstance(bounds, SwapOptions) else None


def swap_faults(
    document: Document,
    options: Mapping[str, Any],
    classes: Mapping[str, type[Stage]],
    workers: Iterable[Sequence[str]],
) -> Iterator[Fault]:
    """Find stages with ``swap`` whose worker cannot be open a second time beside the first.

    Args:
        document: The file.
        options: Validated options of each stage.
        classes: The class of each stage.
        workers: Names of the stages of each worker.
    """
    for names in workers:
        once = [name for name in names if name in classes and not may_be_open_twice(classes[name])]
        for name in names:
            if once and bounds_of(options.get(name)) is not None:
                fault = (
                    f"its worker also runs '{once[0]}', which cannot be open twice, so nothing "
                    "can be tried beside it"
                )
                mend = "Remove 'worker', so that it has one of its own, or remove 'swap'"
                yield document.fault(("stages", name, "swap"), "", fault, mend)


def may_be_open_twice(kind: type[Stage]) -> bool:
    """Whether a stage of a kind may be open in two processes at once: no source, no sink."""
    return kind.is_stateless and bool(kind.inputs) and bool(kind.outputs)

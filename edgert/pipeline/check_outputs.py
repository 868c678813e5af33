"""Stages of different processes that write to the same standard output."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from edgert.errors import Fault
from edgert.options import Options
from edgert.pipeline.document import Document


def check_standard_output(document: Document, options: Mapping[str, Options]) -> Iterator[Fault]:
    """Find sinks of several workers that print their lines.

    What two processes write into a pipe is mixed where a line is longer than the kernel keeps
    together (4096 bytes), and nobody would be told.
    """
    stages = document.spec.stages
    printing = [name for name, made in options.items() if getattr(made, "prints", False)]
    for name in printing[1:]:
        first = printing[0]
        if (stages[name].worker or name) != (stages[first].worker or first):
            fault = f"it prints its lines among those of stage '{first}', of another process"
            mend = "Give both the same 'worker', or one of them a 'path'"
            yield document.fault(("stages", name), "", fault, mend)

"""What the pipeline room must know of a kind of stage, without importing stages (a floor up)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from edgert.options import Options


@dataclass(frozen=True, slots=True)
class StageContract:
    """Ports and options of one kind of stage.

    Attributes:
        kind: As written in the file.
        summary: One line for the documentation.
        inputs: Input port -> kind of data it takes (``*`` takes any). A trailing ``?`` of the port
            name, stripped here, puts the port into ``optional``.
        outputs: Output port -> kind of data it gives.
        optional: Input ports that may be left open and output ports that may go unread.
        options: The class of its options.
        is_source: Whether it is a source (one stream).
        is_stateless: Whether several workers may share its frames.
    """

    kind: str
    summary: str
    inputs: Mapping[str, str]
    outputs: Mapping[str, str]
    optional: frozenset[str]
    options: type[Options]
    is_source: bool
    is_stateless: bool = False


class Kinds(Protocol):
    """The kinds of stage there are (``stages/registry.py``)."""

    def names(self) -> tuple[str, ...]:
        """Every kind that can be named without a module path, sorted."""
        ...

    def contract(self, kind: str) -> StageContract:
        """Return the contract of a kind, importing its module.

        Raises:
            UserError: There is no such kind, or its module or class cannot be had; the near miss
                is named.
        """
        ...

"""A pipeline file that was read: its data, and where everything in it stands."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from edgert.errors import Fault, KeyFault
from edgert.pipeline.marks import Loc, Marks
from edgert.pipeline.spec import PipelineSpec


@dataclass(frozen=True, slots=True)
class Document:
    """A pipeline file that was read.

    Attributes:
        path: The file.
        spec: What stands in it. Where ``faults`` is not empty, without what was faulty.
        marks: Where each value stands.
        faults: What was wrong so far; empty in a document that ``load`` returned.
        is_whole: Every stage has the inputs that the file gives it, so that faults of the graph
            as a whole can be told.
        warnings: What was noticed so far that is no fault.
    """

    path: Path
    spec: PipelineSpec
    marks: Marks
    faults: tuple[Fault, ...] = ()
    is_whole: bool = True
    warnings: tuple[Fault, ...] = ()

    @property
    def folder(self) -> Path:
        """The file's folder: relative paths in it start there."""
        return self.path.parent

    def fault(self, loc: Loc, place: str, fault: str, mend: str = "") -> Fault:
        """Return a fault with the line and column of a key path, or of its nearest ancestor.

        Args:
            loc: Key path, for example ``("stages", "camera", "uri")``.
            place: How the place is called; made from ``loc`` where it is empty.
            fault: What is wrong.
            mend: What to do about it.
        """
        return self.marks.fault(loc, fault, mend, place=place)

    def located(self, loc: Loc, fault: Fault) -> Fault:
        """Return a fault that a stage told, with its line and column.

        Args:
            loc: Key path of what it is told of; that of its key, where it names one, begins there.
            fault: The fault.
        """
        at_key = False
        if isinstance(fault, KeyFault):
            loc, at_key = (*loc, *fault.path), fault.is_unknown
        return self.marks.fault(loc, fault.fault, fault.mend, place=fault.place, at_key=at_key)

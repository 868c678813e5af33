"""What a stage is refused for: what it keeps of a frame that has ended, an output left unwritten.

A stage that makes one frame at a time is looked at after each, before anybody reads it. With
several in flight, a thread that has said ``done`` is still in the call that holds what it had:
views are looked for when their memory is lent for another frame.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from edgert.errors import StageError
from edgert.stages.context import StageContext
from edgert.tensor import ROWS
from edgert.transport.holders import held_for_good
from edgert.transport.slot import Loan

PATIENCE_S = 1.0
"""How long a thread that has said ``done`` may take to return: it may have to wait for a core."""
_COPY = "Copy what is kept: array.copy()"
_ROW = "Write a row for each thing to every one of them"
_THREADS = ". A variable of a thread that waits keeps it, too"


class Lent(Protocol):
    """Memory of a frame."""

    def views_kept(self) -> list[str]:
        """Name the tensors of which somebody still holds a view."""
        ...


def refuse_kept_views(
    place: str, inputs: Mapping[str, Lent], outputs: Mapping[str, Lent], patience_s: float = 0.0
) -> None:
    """Refuse a view of an input, whose slot gets another frame, or of an output that others read.

    Args:
        place: ``stage 'NAME'``.
        inputs: Memory of its inputs.
        outputs: Memory of its outputs.
        patience_s: How long its threads may take to return; 0 where it has none.

    Raises:
        StageError: There is one.
    """
    also = _THREADS if patience_s else ""
    for port, lent in inputs.items():
        if views := held_for_good(lent.views_kept, patience_s):
            raise _kept(place, f"a view of input '{port}' ({', '.join(views)})", _COPY + also)
    for port, lent in outputs.items():
        if views := held_for_good(lent.views_kept, patience_s):
            mend = f"Ask for it in each frame: outputs['{port}'].tensor(...){also}"
            raise _kept(place, f"a view of output '{port}' ({', '.join(views)})", mend)


def kept_input(place: str) -> StageError:
    """Return what is told of a stage that kept an input itself."""
    return _kept(place, "a frame that it got in `inputs`", _COPY)


def kept_output(place: str) -> StageError:
    """Return what is told of a stage that kept an output itself."""
    mend = "Take it from `outputs` in each frame"
    return _kept(place, "a frame that it got in `outputs`", mend)


class Written:
    """What the outputs of a stage must be before they are sent.

    Args:
        context: The stage's.
        how: When a tensor is to be written, and what else there is to do.
    """

    def __init__(self, context: StageContext, how: str) -> None:
        self._place, self._how = context.place, how
        self._rows = {port: ROWS.get(spec.kind, ()) for port, spec in context.outputs.items()}

    def require(self, loans: Mapping[str, Loan], sequence: int) -> None:
        """Refuse an output that nobody wrote, or of which nobody can tell what belongs together.

        Raises:
            StageError: There is one.
        """
        for port, loan in loans.items():
            if loan.is_blank:
                fault = f"it wrote nothing to output '{port}' for frame {sequence}"
                raise StageError(self._place, fault, self._how)
            if (rows := self._rows.get(port)) and (shapes := loan.uneven(rows)):
                said = ", ".join(f"{name} {list(shape)}" for name, shape in shapes.items())
                fault = f"what it wrote to output '{port}' for frame {sequence} differs in length"
                raise StageError(self._place, f"{fault}: {said}", _ROW)


def _kept(place: str, what: str, mend: str) -> StageError:
    return StageError(place, f"it kept {what} after its frame ended", mend)

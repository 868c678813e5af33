"""What a stage is refused for: what it keeps of a frame that has ended, an output left unwritten.

A stage that makes one frame at a time is looked at after each, before anybody reads it. With
several in flight, a thread that has said ``done`` is still in the call that holds what it had:
views are looked for when their memory is lent for another frame.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from edgert.errors import StageError
from edgert.stages.base import StageContext
from edgert.tensor import ROWS
from edgert.transport.holders import PATIENCE_S, held_for_good
from edgert.transport.join import Arrival
from edgert.transport.slot import Loan, Sample

COPY = "Copy what is kept: array.copy()"
_ROW = "Write a row for each thing to every one of them"
_THREADS = ". A variable of a thread that waits keeps it, too"


def refuse_kept_inputs(place: str, samples: Mapping[str, Sample]) -> None:
    """Refuse a view of an input that outlives its frame: its slot gets another one.

    Raises:
        StageError: There is one.
    """
    for port, sample in samples.items():
        if views := held_for_good(sample.views_kept):
            raise kept(place, _input(port, views), COPY)


def refuse_kept_outputs(place: str, loans: Mapping[str, Loan]) -> None:
    """Refuse an output that could still be written when others read it.

    Raises:
        StageError: There is one.
    """
    for port, loan in loans.items():
        if views := held_for_good(loan.views_kept):
            raise kept(place, _output(port, views), _ask(port))


def refuse_views_left(place: str, arrival: Arrival, loans: Mapping[str, Loan]) -> None:
    """Refuse a view of the last frame that was in the memory which another frame has now.

    Raises:
        StageError: There is one.
    """
    for port, held in arrival.held.items():
        if views := held_for_good(held.views_left, PATIENCE_S):
            raise kept(place, _input(port, views), COPY + _THREADS)
    for port, loan in loans.items():
        if views := held_for_good(loan.views_kept, PATIENCE_S):
            raise kept(place, _output(port, views), _ask(port) + _THREADS)


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


def kept(place: str, what: str, mend: str) -> StageError:
    """Return what is told of something that was kept."""
    return StageError(place, f"it kept {what} after its frame ended", mend)


def _input(port: str, views: Sequence[str]) -> str:
    return f"a view of input '{port}' ({', '.join(views)})"


def _output(port: str, views: Sequence[str]) -> str:
    return f"a view of output '{port}' ({', '.join(views)})"


def _ask(port: str) -> str:
    return f"Ask for it in each frame: outputs['{port}'].tensor(...)"

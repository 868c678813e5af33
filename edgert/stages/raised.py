"""What is told of an error that left a stage: whose it was, where, and in its own words."""

from __future__ import annotations

import traceback
from collections.abc import Iterator
from contextlib import contextmanager

from edgert.errors import EdgertError, StageError


def raised(kind: type, place: str, error: BaseException, when: str) -> EdgertError:
    """Return the error as it is told; one that is meant for the user already stays as it is.

    Args:
        kind: The stage's class.
        place: ``stage 'NAME'``.
        error: What it raised.
        when: For example ``in open()``.
    """
    if isinstance(error, EdgertError):
        return error
    words = words_of(error)
    said = f"{kind.__module__}:{kind.__qualname__} raised {type(error).__name__} {when}"
    return StageError(place, f"{said}: {words}" if words else said)


@contextmanager
def named(kind: type, place: str, when: str) -> Iterator[None]:
    """Name the stage in whatever is raised within, ``sys.exit()`` included."""
    try:
        yield
    except EdgertError:
        raise
    except BaseException as error:
        raise raised(kind, place, error, when) from error


def words_of(error: BaseException, *, with_type: bool = False) -> str:
    """Return the text of an error, whose own ``__str__`` may fail."""
    lines = traceback.format_exception_only(error)
    said = next(line for line in lines if not line.startswith(" "))  # of a SyntaxError, code first
    return said.strip() if with_type else said.partition(": ")[2].strip()

"""How commands print: text, JSON and tables on standard output."""

from __future__ import annotations

import json
import os
import sys
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from itertools import zip_longest
from typing import Any

import click

from edgert.errors import RunError

_GAP = "  "
_NARROWEST = 12  # characters to which a column is folded


def show(text: str) -> None:
    """Print a text.

    Raises:
        RunError: It cannot be written (a full disk); a reader that went away is no error, and
            stays a BrokenPipeError.
    """
    try:
        click.echo(text)
    except BrokenPipeError:
        raise
    except OSError as error:
        raise RunError("standard output", f"cannot be written: {error.strerror}") from error


def show_json(value: Any) -> None:
    """Print a value as JSON, indented."""
    show(json.dumps(value, indent=2, ensure_ascii=False))


def sentences(*said: str) -> str:
    """Return texts as sentences one after another, empty ones left out."""
    return " ".join(f"{text.rstrip('.')}." for text in said if text)


def table(headers: Sequence[str], rows: Iterable[Sequence[Any]], width: int | None = None) -> str:
    """Return rows under headers in aligned columns; numbers stand to the right, None is a dash.

    Without colours or frames, so that it can be read by people and by ``awk``. In a terminal that
    is too narrow for it, the widest texts are folded; the first column and numbers stay whole.

    Args:
        headers: What stands above each column.
        rows: The cells of each row.
        width: Characters there are, 0 for any number; None for what standard output has.
    """
    kept = [list(row) for row in rows]
    texts = [list(headers), *([_cell(value) for value in row] for row in kept)]
    numeric = [
        bool(column) and all(value is None or isinstance(value, int | float) for value in column)
        for column in (zip(*kept, strict=True) if kept else [() for _ in headers])
    ]
    widths = [max(map(len, column)) for column in zip(*texts, strict=True)]
    narrow = _narrowed(widths, numeric, _terminal_width() if width is None else width)
    lines = [line for cells in texts for line in _folded(cells, narrow)]
    return "\n".join(_line(line, narrow, numeric) for line in lines)


def _terminal_width() -> int:
    """Return the columns of the terminal that standard output is; 0 where it is none."""
    if sys.stdout is None:  # closed by who started us
        return 0
    try:
        return os.get_terminal_size(sys.stdout.fileno()).columns
    except OSError:  # a pipe, a file, or a stream of no file at all
        return 0


def _narrowed(widths: Sequence[int], numeric: Sequence[bool], width: int) -> list[int]:
    """Return widths that fit, the widest texts made narrower; as they are where none can be."""
    narrow = list(widths)
    over = sum(narrow) + len(_GAP) * (len(narrow) - 1) - width if width else 0
    foldable = [n for n in range(1, len(narrow)) if not numeric[n]]
    for _ in range(over):
        widest = max(foldable, key=narrow.__getitem__, default=0)
        if not widest or narrow[widest] <= _NARROWEST:
            return list(widths)
        narrow[widest] -= 1
    return narrow


def _folded(cells: Sequence[str], widths: Sequence[int]) -> Iterator[list[str]]:
    """Yield the lines of a row."""
    folded = [
        textwrap.wrap(cell, width, break_on_hyphens=False) if len(cell) > width else [cell]
        for cell, width in zip(cells, widths, strict=True)
    ]
    yield from map(list, zip_longest(*folded, fillvalue=""))


def _cell(value: Any) -> str:
    if value is None:
        return "-"
    return f"{value:.2f}" if isinstance(value, float) else str(value)


def _line(texts: list[str], widths: list[int], numeric: list[bool]) -> str:
    cells = (
        text.rjust(width) if right else text.ljust(width)
        for text, width, right in zip(texts, widths, numeric, strict=True)
    )
    return _GAP.join(cells).rstrip()

"""How commands print: text, JSON and tables on standard output."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any

import click

from edgert.errors import RunError


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


def table(headers: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """Return rows under headers in aligned columns; numbers stand to the right, None is a dash.

    Without colours or frames, so that it can be read by people and by ``awk``.
    """
    kept = [list(row) for row in rows]
    texts = [list(headers), *([_cell(value) for value in row] for row in kept)]
    widths = [max(map(len, column)) for column in zip(*texts, strict=True)]
    numeric = [
        bool(column) and all(value is None or isinstance(value, int | float) for value in column)
        for column in (zip(*kept, strict=True) if kept else [() for _ in headers])
    ]
    return "\n".join(_line(line, widths, numeric) for line in texts)


def _cell(value: Any) -> str:
    if value is None:
        return "-"
    return f"{value:.2f}" if isinstance(value, float) else str(value)


def _line(texts: list[str], widths: list[int], numeric: list[bool]) -> str:
    cells = (
        text.rjust(width) if right else text.ljust(width)
        for text, width, right in zip(texts, widths, numeric, strict=True)
    )
    return "  ".join(cells).rstrip()

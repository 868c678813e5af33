"""Writing a report: the format follows the extension of the file."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from pathlib import Path

import msgspec

from edgert.coverage.record import Report
from edgert.coverage.report.junit import junit
from edgert.coverage.report.page import page
from edgert.coverage.report.read import Merged
from edgert.coverage.report.text import csv_text, markdown
from edgert.errors import ResourceError, UserError
from edgert.models.atomic import require_writable, write_atomically

_FOR_ALL_TO_READ = 0o644  # a report is there to be passed on


def _json(reports: Sequence[Report]) -> str:
    whole = reports[0] if len(reports) == 1 else Merged(reports=list(reports))
    return msgspec.json.format(msgspec.json.encode(whole), indent=1).decode() + "\n"


FORMATS: dict[str, Callable[[Sequence[Report]], str]] = {
    ".html": page,
    ".json": _json,
    ".xml": junit,
    ".md": markdown,
    ".csv": csv_text,
}


def check_path(path: Path, formats: Collection[str] = tuple(FORMATS)) -> None:
    """Refuse a file whose extension is no format, or that cannot be written, before the work.

    Raises:
        UserError: There is no such format, or no such folder.
    """
    if path.suffix.lower() not in formats:
        fault = f"there is no format {path.suffix or 'without extension'!r}"
        raise UserError(f"report {path}", fault, f"One of: {', '.join(formats)}")
    require_writable("--report", path)


def write(reports: Sequence[Report], path: Path) -> None:
    """Write one report, or several side by side, whole or not at all.

    Raises:
        UserError: There is no such format.
        ResourceError: It cannot be written.
    """
    check_path(path)
    save_text(FORMATS[path.suffix.lower()](reports), path)


def save_text(text: str, path: Path) -> None:
    """Write a text whole or not at all, for all to read.

    Raises:
        ResourceError: It cannot be written.
    """
    try:
        write_atomically(path, text.encode())
        path.chmod(_FOR_ALL_TO_READ)
    except OSError as error:
        fault = f"cannot be written: {error.strerror}"
        raise ResourceError(f"report {path}", fault, "Name a file in a folder of yours") from error

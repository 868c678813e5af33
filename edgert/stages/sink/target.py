"""Files that sinks write: checked while planning, without creating or changing anything."""

from __future__ import annotations

import os
from pathlib import Path

from edgert.errors import UserError

MEND = "give another `path` (or --output)"


def check_writable(path: Path, place: str) -> None:
    """Check that a file can be written, without creating or truncating it.

    Raises:
        UserError: It cannot.
    """
    where = f"{place}, file '{path}'"
    if path.is_dir():
        raise UserError(where, "is a directory", MEND)
    if path.exists():
        if not os.access(path, os.W_OK):
            raise UserError(where, "must not be written", MEND)
        return
    if not path.parent.is_dir():
        raise UserError(where, f"there is no directory '{path.parent}'", f"make it, or {MEND}")
    if not os.access(path.parent, os.W_OK | os.X_OK):
        raise UserError(where, f"nothing can be written to '{path.parent}'", MEND)


def absolute(path: str) -> Path:
    """Return where results go: relative to where the run was started, not to the pipeline file."""
    return Path(path).expanduser().absolute()

"""Paths that somebody wrote, in a file or on a command line."""

from __future__ import annotations

from pathlib import Path


def below(folder: str | Path, written: str) -> Path:
    """Return an absolute path; a relative one starts in a folder, and `~` is somebody's home."""
    try:
        given = Path(written).expanduser()
    except RuntimeError:  # nobody of that name: then it is a folder like any other
        given = Path(written)
    return Path(folder, given).absolute()

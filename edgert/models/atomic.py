"""Files that are there whole or not at all."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from edgert.errors import ResourceError


def require_writable(what: str, path: Path) -> None:
    """Check that a file can be written, without making it: before the work, not after it.

    Args:
        what: What it is for, as the fault calls it: ``--summary``.
        path: The file. Its folder is not made: a wrong path is more likely than a new folder.

    Raises:
        ResourceError: It cannot.
    """
    folder = path.absolute().parent
    try:
        has_folder, is_there = folder.is_dir(), path.exists()
    except OSError as error:
        fault = f"cannot be written ({error.strerror})"
        raise ResourceError(f"{what} '{path}'", fault, "Give another path") from error
    if not has_folder:
        raise ResourceError(what, f"folder '{folder}' is not there", "Make it first")
    if not os.access(path if is_there else folder, os.W_OK):
        raise ResourceError(f"{what} '{path}'", "must not be written", "Give another path")


def write_atomically(path: Path, data: bytes) -> None:
    """Write a small file so that a reader never sees half of it.

    Raises:
        OSError: It cannot be written.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    fd, temporary = tempfile.mkstemp(prefix=".", dir=path.parent)
    try:
        with os.fdopen(fd, "wb") as file:
            file.write(data)
        Path(temporary).replace(path)
    except OSError:
        Path(temporary).unlink(missing_ok=True)
        raise


def move_into_place(source: Path, path: Path) -> None:
    """Give a finished file of the same file system its final name, and make it last.

    Raises:
        OSError: It cannot be written.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    _sync(source)
    source.replace(path)
    _sync(path.parent)


def _sync(path: Path) -> None:
    fd = os.open(path, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)

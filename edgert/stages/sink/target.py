"""Files that sinks write: checked while planning, without changing anything; claimed when open."""

from __future__ import annotations

import errno
import fcntl
import itertools
import os
import stat
from pathlib import Path

from edgert.errors import UserError
from edgert.paths import below

MEND = "give another `path` (or --output)"


def check_writable(path: Path, place: str) -> None:
    """Check that a file can be written, without creating or truncating it.

    Raises:
        UserError: It cannot.
    """
    where = f"{place}, file '{path}'"
    try:
        is_there, has_folder = path.exists(), path.parent.is_dir()
    except OSError as error:
        raise UserError(where, f"cannot be written: {error.strerror}", MEND) from error
    if path.is_dir():
        raise UserError(where, "is a directory", MEND)
    if is_there:
        if not os.access(path, os.W_OK):
            raise UserError(where, "must not be written", MEND)
        return
    if not has_folder:
        raise UserError(where, f"there is no directory '{path.parent}'", f"make it, or {MEND}")
    if not os.access(path.parent, os.W_OK | os.X_OK):
        raise UserError(where, f"nothing can be written to '{path.parent}'", MEND)


def claim(path: Path, place: str, *, keep: bool = False) -> int:
    """Make a file anew; as long as the descriptor is open, it is nobody else's to write.

    Args:
        path: The file.
        place: The stage, for errors.
        keep: What is in it stays, and is written on after its end.

    Raises:
        UserError: It cannot be written, or another stage or run is writing it.
    """
    where = f"{place}, file '{path}'"
    try:  # a FIFO that nobody reads is told at once, not waited for
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | os.O_NONBLOCK, 0o666)
        os.set_blocking(fd, True)
    except OSError as error:
        if error.errno == errno.ENXIO:
            raise UserError(
                where, "is a pipe that nobody reads", "start its reader first"
            ) from error
        raise UserError(where, f"cannot be written: {error.strerror}", MEND) from error
    if stat.S_ISREG(os.fstat(fd).st_mode):  # a device may have several writers
        if _is_locked(fd):
            os.close(fd)
            raise UserError(where, "is being written by another stage or run", MEND)
        if not keep:
            os.ftruncate(fd, 0)
        os.lseek(fd, 0, os.SEEK_END)
    return fd


def next_part(path: Path) -> Path:
    """Return the first file that is not there yet to go on in: ``detect-2.mp4``."""
    numbered = (path.with_stem(f"{path.stem}-{number}") for number in itertools.count(2))
    return next(file for file in numbered if not file.exists())


def _is_locked(fd: int) -> bool:
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:  # a file system without locks
        return False
    return False


def absolute(path: str) -> Path:
    """Return where results go: relative to where the run was started, not to the pipeline file."""
    return below(Path.cwd(), path)

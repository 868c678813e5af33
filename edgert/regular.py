"""Opens files that somebody named: whole ones alone, since a pipe waits and a device has no end."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path
from typing import IO

NOT_REGULAR = "it is a pipe or a device"


def open_regular(path: Path) -> IO[bytes]:
    """Open a regular file for reading.

    Raises:
        OSError: It cannot be opened, or is a FIFO, a socket or a device.
    """
    file = open(path, "rb", opener=_at_once)  # noqa: PTH123, SIM115  for its opener; the caller closes
    if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        file.close()
        raise OSError(errno.EINVAL, NOT_REGULAR, str(path))
    return file


def _at_once(path: str, flags: int) -> int:
    """Open a file; a FIFO that nobody writes to does not hold us up."""
    return os.open(path, flags | os.O_NONBLOCK | os.O_CLOEXEC)

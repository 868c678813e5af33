"""What the kernel tells of a directory: files that were closed after writing, or moved there."""

from __future__ import annotations

import ctypes
import os
import struct
from collections.abc import Iterator
from pathlib import Path

CLOSE_WRITE, MOVED_TO, CREATE = 0x08, 0x80, 0x100
_HEAD = struct.Struct("iIII")  # watch, what happened, cookie, bytes of the name that follows
_READ_BYTES = 1 << 16


class Inotify:
    """Watches one directory.

    Raises:
        OSError: It cannot be watched: it is not there, or there are too many watches.
    """

    def __init__(self, folder: Path) -> None:
        libc = ctypes.CDLL(None, use_errno=True)
        self.fd: int = libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        mask = CLOSE_WRITE | MOVED_TO | CREATE
        if self.fd < 0 or libc.inotify_add_watch(self.fd, os.fsencode(folder), mask) < 0:
            code = ctypes.get_errno()
            self.close()
            raise OSError(code, os.strerror(code), str(folder))

    def events(self) -> Iterator[tuple[str, int]]:
        """Yield name and flags of everything that has happened since the last call."""
        while True:
            try:
                data = os.read(self.fd, _READ_BYTES)
            except BlockingIOError:
                return
            at = 0
            while at < len(data):
                _, flags, _, length = _HEAD.unpack_from(data, at)
                at += _HEAD.size
                name = data[at : at + length].rstrip(b"\0")
                at += length
                if name:
                    yield os.fsdecode(name), flags

    def close(self) -> None:
        """Stop watching."""
        if self.fd >= 0:
            os.close(self.fd)
            self.fd = -1

"""A file of whole lines: a line is there from its first byte to its last, or not at all."""

from __future__ import annotations

import contextlib
import os
import select
import stat
from collections.abc import Callable
from pathlib import Path

import msgspec

from edgert.stages.sink.rotation import Rotation
from edgert.stages.sink.target import claim

_LOOKED_AT_BYTES = 1 << 20
_WAITS_MS = 250


class _Line(msgspec.Struct):
    """What a line is known by."""

    stream: str
    frame: int


class LineFile:
    """Lines written whole and at once, unbuffered, to a file in parts or to an open descriptor.

    Args:
        fd: Where lines go.
        on_wait: Called now and then while whoever reads has to make room.
    """

    def __init__(self, fd: int, on_wait: Callable[[], None]) -> None:
        self.fd = fd
        self._on_wait = on_wait
        self._is_read = not stat.S_ISREG(os.fstat(fd).st_mode)
        self._room = select.poll()
        self._room.register(fd, select.POLLOUT)

    def write(self, line: bytes) -> None:
        """Write one line.

        Raises:
            OSError: It cannot be written; nothing of it is left in a regular file.
        """
        written = 0
        try:
            while written < len(line):  # again where a pipe or a disk is nearly full
                written += self._write_some(line[written:])
        except OSError:
            self._take_back(written)
            raise

    def _write_some(self, data: bytes) -> int:
        if self._is_read:  # by somebody who may take a long time: a person, a slow script
            while not self._room.poll(_WAITS_MS):
                self._on_wait()
            data = data[: select.PIPE_BUF]  # what there is room for, now
        try:
            return os.write(self.fd, data)
        except BlockingIOError:  # whoever shares our standard output made it non-blocking
            return 0

    def _take_back(self, written: int) -> None:
        """Remove the first part of a line whose rest found no room."""
        found = os.fstat(self.fd)
        if written and stat.S_ISREG(found.st_mode):
            at = os.lseek(self.fd, 0, os.SEEK_CUR)
            if at == found.st_size:  # nobody else has written after it
                os.ftruncate(self.fd, at - written)
                os.lseek(self.fd, at - written, os.SEEK_SET)

    def close(self) -> None:
        """Let go of the descriptor, which is its owner's."""


class RotatedFile(LineFile):
    """Lines in a file of our own, in parts where that is wanted.

    Args:
        path: The file.
        rotation: When a part is finished.
        place: The stage, for errors.
        goes_on: Whether an earlier process of the same run has written to it.
        on_wait: As that of ``LineFile``: the path may be a pipe's.

    Attributes:
        last: Stream -> its last frame among the lines of an earlier process.
    """

    def __init__(
        self,
        path: Path,
        rotation: Rotation,
        place: str,
        *,
        goes_on: bool,
        on_wait: Callable[[], None],
    ) -> None:
        super().__init__(claim(path, place, keep=goes_on or rotation.is_wanted), on_wait)
        self.last: dict[str, int] = {}
        self._path, self._rotation, self._place = path, rotation, place
        if stat.S_ISREG(os.fstat(self.fd).st_mode):
            self._take_up(goes_on=goes_on)

    def _take_up(self, *, goes_on: bool) -> None:
        newest = self._rotation.newest() if goes_on else None
        if newest:  # the last lines of the process that died may stand there
            self.last |= last_lines(newest)[0]
        found, whole_bytes = last_lines(self._path)
        os.ftruncate(self.fd, whole_bytes)
        os.lseek(self.fd, 0, os.SEEK_END)
        if goes_on:
            self.last |= found
        elif whole_bytes:  # of an earlier run: nothing that was kept in parts is thrown away
            self._turn_over()

    def write(self, line: bytes) -> None:
        """Write one line, into a new part where it is time.

        Raises:
            OSError: It cannot be written; nothing of it is left.
        """
        if self._rotation.is_wanted and self._rotation.is_due(os.fstat(self.fd).st_size, len(line)):
            self._turn_over()
        super().write(line)

    def _turn_over(self) -> None:
        before = self.fd
        self._rotation.finish()
        self.fd = claim(self._path, self._place)
        os.close(before)
        self._rotation.begin()

    def close(self) -> None:
        """Close the file.

        Raises:
            OSError: A file system that only now says it is full.
        """
        fd, self.fd = self.fd, -1
        if fd >= 0:
            os.close(fd)


def last_lines(path: Path) -> tuple[dict[str, int], int]:
    """Return what the lines at the end of a file of results are known by.

    Returns:
        Stream -> its last frame, and how many bytes of the file are whole lines.
    """
    size = path.stat().st_size
    tail = _tail(path, size)
    whole = tail[: tail.rfind(b"\n") + 1]
    last = {}
    for line in whole.splitlines()[size > len(tail) :]:
        with contextlib.suppress(msgspec.DecodeError):  # of somebody else, before it was ours
            found = msgspec.json.decode(line, type=_Line)
            last[found.stream] = found.frame
    return last, size - len(tail) + len(whole)


def _tail(path: Path, size: int) -> bytes:
    """Return the end of a file, with a whole line in it where there is one."""
    looked_at = _LOOKED_AT_BYTES
    with path.open("rb") as file:
        while True:
            file.seek(max(0, size - looked_at))
            tail = file.read()
            if looked_at >= size or b"\n" in tail:
                return tail
            looked_at *= 2

"""``sink.jsonl``: one JSON line for every frame, to a file or to standard output."""

from __future__ import annotations

import contextlib
import os
import select
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar

import msgspec
from pydantic import Field

from edgert.errors import StageError
from edgert.results import encode_line
from edgert.stages.base import (
    Inputs,
    Outputs,
    PlanContext,
    Ports,
    Stage,
    StageContext,
    StageOptions,
)
from edgert.stages.sink.message import RESULT_INPUTS, ResultMaker, require_one
from edgert.stages.sink.target import absolute, check_writable, claim
from edgert.tensor import PortSpec

STDOUT = "-"
STDOUT_FD = 1
_LOOKED_AT_BYTES = 1 << 20


class JsonlOptions(StageOptions):
    """Options of ``sink.jsonl``."""

    path: str = Field(
        STDOUT,
        min_length=1,
        description="The file, made anew at the start; relative to where the run is started. "
        "`-` is standard output.",
    )


class _Line(msgspec.Struct):
    """What a line is known by."""

    stream: str
    frame: int


def take_up(path: Path, fd: int) -> dict[str, int]:
    """Cut half a line off a file of results, and go to its end.

    Returns:
        Stream -> its last frame among the lines at the end.
    """
    size = os.fstat(fd).st_size
    tail = _tail(path, size)
    whole = tail[: tail.rfind(b"\n") + 1]
    os.ftruncate(fd, size - len(tail) + len(whole))
    os.lseek(fd, 0, os.SEEK_END)
    last = {}
    for line in whole.splitlines()[size > len(tail) :]:
        with contextlib.suppress(msgspec.DecodeError):  # of somebody else, before it was ours
            found = msgspec.json.decode(line, type=_Line)
            last[found.stream] = found.frame
    return last


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


class JsonlSink(Stage):
    """Writes one line a frame, an empty list where nothing was found.

    A line is written whole and at once, unbuffered: whoever reads the file sees it. After a restart
    of its process it goes on at the end of the file: half a line is cut off, and a frame whose line
    is there is not written twice.
    """

    inputs: ClassVar = RESULT_INPUTS
    options: ClassVar = JsonlOptions

    @classmethod
    def plan(
        cls, options: JsonlOptions, inputs: Ports, context: PlanContext
    ) -> dict[str, PortSpec]:
        """Check what arrives, and that the file can be written."""
        require_one(inputs, context.place)
        if options.path != STDOUT:
            check_writable(absolute(options.path), context.place)
        return {}

    def __init__(self, options: JsonlOptions, context: StageContext) -> None:
        super().__init__(options, context)
        self._results = ResultMaker(context)
        self._fd = -1
        self._written: Mapping[str, int] = {}

    def open(self) -> None:
        """Make the file anew, or go on where it ends."""
        if self.settings.path == STDOUT:
            self._fd = STDOUT_FD
            return
        path, goes_on = absolute(self.settings.path), self.context.restarts > 0
        self._fd = claim(path, self.context.place, keep=goes_on)
        if goes_on and stat.S_ISREG(os.fstat(self._fd).st_mode):
            self._written = take_up(path, self._fd)

    def process(self, inputs: Inputs, outputs: Outputs) -> None:
        """Write the line of one frame."""
        result = self._results.make(inputs)
        if result.frame > self._written.get(result.stream, -1):
            self._write(encode_line(result))

    def close(self) -> None:
        """Close the file; a file system that only now says it is full is heard."""
        fd, self._fd = self._fd, -1
        if fd in (-1, STDOUT_FD):
            return
        try:
            os.close(fd)
        except OSError as error:
            raise self._failed(error) from error

    def _write(self, line: bytes) -> None:
        written = 0
        try:
            while written < len(line):  # again where a pipe or a disk is nearly full
                written += self._write_some(line[written:])
        except OSError as error:
            self._take_back(written)
            raise self._failed(error) from error

    def _write_some(self, data: bytes) -> int:
        try:
            return os.write(self._fd, data)
        except BlockingIOError:  # whoever shares our standard output made it non-blocking
            select.select([], [self._fd], [])
            return 0

    def _take_back(self, written: int) -> None:
        """Remove the first part of a line whose rest found no room."""
        found = os.fstat(self._fd)
        if written and stat.S_ISREG(found.st_mode):
            at = os.lseek(self._fd, 0, os.SEEK_CUR)
            if at == found.st_size:  # nobody else has written after it
                os.ftruncate(self._fd, at - written)
                os.lseek(self._fd, at - written, os.SEEK_SET)

    def _failed(self, error: OSError) -> StageError:
        target = "standard output" if self.settings.path == STDOUT else f"'{self.settings.path}'"
        place = f"{self.context.place}, {target}"
        if isinstance(error, BrokenPipeError):
            return StageError(place, "whoever reads it has gone", "keep the reader running")
        return StageError(place, f"cannot be written: {error.strerror}", "make room, or see to it")

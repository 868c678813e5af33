"""``sink.jsonl``: one JSON line for every frame, to a file or to standard output."""

from __future__ import annotations

import os
import select
import stat
from typing import ClassVar

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


class JsonlOptions(StageOptions):
    """Options of ``sink.jsonl``."""

    path: str = Field(
        STDOUT,
        min_length=1,
        description="The file, made anew at the start; relative to where the run is started. "
        "`-` is standard output.",
    )


class JsonlSink(Stage):
    """Writes one line a frame, an empty list where nothing was found.

    A line is written whole and at once, unbuffered: whoever reads the file sees it.
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

    def open(self) -> None:
        """Make the file anew."""
        path = self.settings.path
        self._fd = STDOUT_FD if path == STDOUT else claim(absolute(path), self.context.place)

    def process(self, inputs: Inputs, outputs: Outputs) -> None:
        """Write the line of one frame."""
        self._write(encode_line(self._results.make(inputs)))

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

"""``sink.jsonl``: one JSON line for every frame, to a file or to standard output."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from edgert.errors import StageError, UserError
from edgert.options import option
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
from edgert.stages.sink.linefile import LineFile, RotatedFile
from edgert.stages.sink.message import RESULT_INPUTS, ResultMaker, require_one
from edgert.stages.sink.room import DiskRoom
from edgert.stages.sink.rotation import MIN_FREE_MB, ROTATE, RotateOptions, Rotation
from edgert.stages.sink.target import absolute, check_writable
from edgert.tensor import PortSpec

STDOUT = "-"


class JsonlOptions(StageOptions):
    """Options of ``sink.jsonl``."""

    path: str = option(
        default=STDOUT,
        min_length=1,
        description="The file, made anew at the start; relative to where the run is started. "
        "`-` is standard output.",
    )
    rotate: RotateOptions | None = ROTATE
    min_free_mb: float = MIN_FREE_MB

    @property
    def prints(self) -> bool:
        """Whether its lines go to standard output: by this the check knows who does."""
        return self.path == STDOUT


class JsonlSink(Stage):
    """Writes one line a frame, an empty list where nothing was found.

    A line is written whole and at once, unbuffered: whoever reads the file sees it. After a restart
    of its process it goes on at the end of the file: half a line is cut off, and a frame whose line
    is there is not written twice.
    """

    inputs: ClassVar = RESULT_INPUTS
    options: ClassVar = JsonlOptions
    settings: JsonlOptions

    @classmethod
    def plan(
        cls, options: JsonlOptions, inputs: Ports, context: PlanContext
    ) -> dict[str, PortSpec]:
        """Check what arrives, and that the file can be written."""
        require_one(inputs, context.place)
        if not options.prints:
            check_writable(absolute(options.path), context.place)
        elif options.rotate or options.min_free_mb:
            key = "rotate" if options.rotate else "min_free_mb"
            fault = "is for files, and this is standard output"
            raise UserError(f"{context.place}, `{key}`", fault, "give a `path`, or leave it out")
        return {}

    def __init__(self, options: JsonlOptions, context: StageContext) -> None:
        super().__init__(options, context)
        self._results = ResultMaker(context)
        self._room = DiskRoom(absolute(options.path).parent, options.min_free_mb, context)
        self._file = LineFile(context.results_fd, self._wait)
        self._written: Mapping[str, int] = {}

    def open(self) -> None:
        """Make the file anew, or go on where it ends."""
        if self.settings.prints:
            return
        path, context = absolute(self.settings.path), self.context
        rotation = Rotation(path, self.settings.rotate, context.place)
        file = RotatedFile(
            path, rotation, context.place, goes_on=context.restarts > 0, on_wait=self._wait
        )
        self._file, self._written = file, file.last

    def process(self, inputs: Inputs, outputs: Outputs) -> None:
        """Write the line of one frame."""
        result = self._results.make(inputs)
        if result.frame <= self._written.get(result.stream, -1):
            return
        if not self._room.is_there():
            self._room.lose()
        try:
            self._file.write(encode_line(result))
        except OSError as error:
            if self._room.is_lack(error):
                self._room.lose()
            raise self._failed(error) from error

    def close(self) -> None:
        """Close the file; a file system that only now says it is full is heard."""
        self._room.tell_end()
        try:
            self._file.close()
        except OSError as error:
            raise self._failed(error) from error

    def _wait(self) -> None:
        self.context.on_wait()  # which is not known yet when the file is opened

    def _failed(self, error: OSError) -> StageError:
        target = "standard output" if self.settings.prints else f"'{self.settings.path}'"
        place = f"{self.context.place}, {target}"
        if isinstance(error, BrokenPipeError):
            return StageError(place, "whoever reads it has gone", "keep the reader running")
        return StageError(place, f"cannot be written: {error.strerror}", "make room, or see to it")

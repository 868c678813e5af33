"""``sink.video``: records the video with what was found drawn on it."""

from __future__ import annotations

import contextlib
import os
from typing import TYPE_CHECKING, ClassVar, Literal

from edgert.errors import StageError, UserError
from edgert.options import option
from edgert.stages.base import (
    Inputs,
    Outputs,
    PlanContext,
    Ports,
    Stage,
    StageContext,
    StageOptions,
)
from edgert.stages.sink.message import RESULT_INPUTS
from edgert.stages.sink.room import DiskRoom
from edgert.stages.sink.rotation import MIN_FREE_MB, ROTATE, RotateOptions, Rotation
from edgert.stages.sink.target import absolute, check_writable, claim, next_part
from edgert.tensor import PortSpec

if TYPE_CHECKING:
    from edgert.stages.sink.record import Recorder

SUFFIXES = (".mp4", ".mkv")


class VideoOptions(StageOptions):
    """Options of ``sink.video``."""

    path: str = option(
        min_length=1,
        description="The file, `.mp4` or `.mkv`, made anew at the start; relative to where the run "
        "is started.",
    )
    fps: float = option(
        default=0,
        ge=0,
        le=1000,
        description="Nominal frames per second, the source's own where it is not given. Every "
        "frame keeps its own time.",
    )
    codec: Literal["auto", "h264", "mpeg4"] = option(
        default="auto",
        description="`auto` is H.264 where this build of FFmpeg has it, else MPEG-4.",
    )
    quality: int = option(default=23, ge=0, le=51, description="0 is best, 51 worst; 23 is usual.")
    rotate: RotateOptions | None = ROTATE
    min_free_mb: float = MIN_FREE_MB


class VideoSink(Stage):
    """Draws what was found on each frame and encodes it, with the times of the source.

    The file can be played after Ctrl-C, and up to the last seconds after a kill; after a restart it
    goes on in a file of its own (`detect-2.mp4`). Odd sizes grow by
    one pixel, which H.264 asks for.
    """

    inputs: ClassVar = {"image": "image", **RESULT_INPUTS}
    options: ClassVar = VideoOptions

    _recorder: Recorder | None = None
    _fd = -1

    @classmethod
    def plan(
        cls, options: VideoOptions, inputs: Ports, context: PlanContext
    ) -> dict[str, PortSpec]:
        """Check the file and that one stream arrives."""
        path = absolute(options.path)
        where = f"{context.place}, file '{path}'"
        if path.suffix.lower() not in SUFFIXES:
            raise UserError(where, f"'{path.suffix}' is not supported", "name it .mp4 or .mkv")
        if len(context.streams) > 1:
            streams = ", ".join(context.streams)
            raise UserError(
                context.place,
                f"{len(context.streams)} streams into one file ({streams})",
                "give each stream a sink.video of its own",
            )
        check_writable(path, context.place)
        return {}

    def __init__(self, options: VideoOptions, context: StageContext) -> None:
        super().__init__(options, context)
        self._path = absolute(options.path)
        self._rotation = Rotation(self._path, options.rotate, context.place)
        self._room = DiskRoom(self._path.parent, options.min_free_mb, context)

    def open(self) -> None:
        """Make the file anew."""
        if self._rotation.is_wanted:  # what an earlier process left is one of the parts
            os.close(claim(self._path, self.context.place, keep=True))
            self._rotation.finish()
        elif self.context.restarts:
            self._path = next_part(self._path)
        self._begin()

    def process(self, inputs: Inputs, outputs: Outputs) -> None:
        """Draw and encode one frame."""
        if not self._room.is_there():
            self._end_for_want_of_room()
            self._room.lose()
        if self._fd >= 0 and self._rotation.is_due(os.fstat(self._fd).st_size):
            self._end()
        recorder = self._recorder or self._begin()
        try:
            recorder.add(inputs)
        except StageError as error:
            if self._room.is_lack(error.__cause__):
                self._end_for_want_of_room()
                self._room.lose()
            raise

    def close(self) -> None:
        """Encode what is left and finish the file."""
        self._room.tell_end()
        self._end()

    def _begin(self) -> Recorder:
        from edgert.stages.sink.record import Recorder

        # Emptied at once: an older recording must not be taken for this one.
        self._fd = claim(self._path, self.context.place)
        self._recorder = Recorder(self._path, self.settings, self.context)
        self._rotation.begin()
        return self._recorder

    def _end(self) -> None:
        recorder, self._recorder = self._recorder, None
        try:
            if recorder is not None:
                recorder.close()
        finally:
            if self._fd >= 0:
                self._rotation.finish()
                os.close(self._fd)
                self._fd = -1

    def _end_for_want_of_room(self) -> None:
        """Finish the file as well as it can be; what is written later is another one."""
        if self._recorder is None:
            return
        with contextlib.suppress(StageError):  # it plays up to its last fragment, and was told of
            self._end()
        if not self._rotation.is_wanted:
            self._path = next_part(self._path)

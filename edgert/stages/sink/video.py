"""``sink.video``: records the video with what was found drawn on it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Literal

from pydantic import Field

from edgert.errors import UserError
from edgert.stages.base import Inputs, Outputs, PlanContext, Ports, Stage, StageOptions
from edgert.stages.sink.message import RESULT_INPUTS
from edgert.stages.sink.target import MEND, absolute, check_writable, claim, part
from edgert.tensor import PortSpec

if TYPE_CHECKING:
    from edgert.stages.sink.record import Recorder

SUFFIXES = (".mp4", ".mkv")


class VideoOptions(StageOptions):
    """Options of ``sink.video``."""

    path: str = Field(
        min_length=1,
        description="The file, `.mp4` or `.mkv`, made anew at the start; relative to where the run "
        "is started.",
    )
    fps: float = Field(
        0,
        ge=0,
        le=1000,
        description="Nominal frames per second, the source's own where it is not given. Every "
        "frame keeps its own time.",
    )
    codec: Literal["auto", "h264", "mpeg4"] = Field(
        "auto", description="`auto` is H.264 where this build of FFmpeg has it, else MPEG-4."
    )
    quality: int = Field(23, ge=0, le=51, description="0 is best, 51 worst; 23 is usual.")


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
        _check_not_the_source(path, inputs["image"], where)
        check_writable(path, context.place)
        return {}

    def open(self) -> None:
        """Make the file anew."""
        from edgert.stages.sink.record import Recorder

        path = part(absolute(self.settings.path), self.context.restarts)
        # Emptied at once: an older recording must not be taken for this one.
        self._fd = claim(path, self.context.place)
        self._recorder = Recorder(path, self.settings, self.context)

    def process(self, inputs: Inputs, outputs: Outputs) -> None:
        """Draw and encode one frame."""
        if self._recorder is None:
            raise AssertionError("the stage is not open")
        self._recorder.add(inputs)

    def close(self) -> None:
        """Encode what is left and finish the file."""
        recorder, self._recorder = self._recorder, None
        try:
            if recorder is not None:
                recorder.close()
        finally:
            if self._fd >= 0:
                os.close(self._fd)
                self._fd = -1


def _check_not_the_source(path: Path, port: PortSpec, where: str) -> None:
    source = port.attributes.get("path")
    if source and path.exists() and Path(source).exists() and path.samefile(source):
        raise UserError(where, "is the video that is read", MEND)

"""``source.video``: the frames of a video file, with the time stamps of its container."""

from __future__ import annotations

import stat
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from pydantic import Field

from edgert import isolate
from edgert.errors import MediaError
from edgert.stages.base import Outputs, PlanContext, Ports, Source, StageContext, StageOptions
from edgert.tensor import FrameHeader, PortSpec, image_port

if TYPE_CHECKING:
    from edgert.stages.source.decode import VideoDecoder

PROBE_TIMEOUT_S = 30.0
PROBE = "edgert.stages.source.probe:probe_video"
SAMPLE = "sample:"
_WORTH_A_LANDING = 100  # frames; fewer are decoded in the time

Pixels = Annotated[int, Field(ge=1, le=16384)]


class VideoOptions(StageOptions):
    """Options of ``source.video``."""

    uri: str = Field(
        min_length=1,
        description="A video file, relative to the pipeline file, or `sample:NAME`.",
    )
    max_size: tuple[Pixels, Pixels] | None = Field(
        None,
        description="Largest `[width, height]` handed on; larger frames are scaled down and "
        "counted. The video's own size where it is not given.",
    )
    loop: int = Field(1, ge=1, description="How many times the file is played.")
    threads: int = Field(1, ge=1, le=64, description="Threads of the decoder.")


class VideoSource(Source):
    """Decodes a video file: planar frames where the codec gives them, turned upright.

    Frames that cannot be decoded are lost with a reason; a file that ends before it says it does
    is a fault, told at its end.
    """

    outputs: ClassVar = {"image": "image"}
    options: ClassVar = VideoOptions

    _decoder: VideoDecoder

    @classmethod
    def plan(
        cls, options: VideoOptions, inputs: Ports, context: PlanContext
    ) -> dict[str, PortSpec]:
        """Probe the file in a child process and size the slots by its largest frame."""
        path = _find(options.uri, context)
        found: dict[str, Any] = isolate.call(
            PROBE,
            {"path": path, "place": context.place},
            PROBE_TIMEOUT_S,
            f"{context.place}, file '{path}'",
            MediaError,
        )
        width, height = options.max_size or (found["width"], found["height"])
        pixel_format = found.pop("pixel_format")
        return {"image": image_port(width, height, (pixel_format,), {"path": path, **found})}

    def __init__(self, options: VideoOptions, context: StageContext) -> None:
        super().__init__(options, context)
        self._port = context.outputs["image"]

    def open(self) -> None:
        """Open the file and its decoder."""
        from edgert.stages.source.decode import VideoDecoder

        options: VideoOptions = self.settings
        self._decoder = VideoDecoder(self._port, self.context, options.loop, options.threads)

    def grab(self) -> FrameHeader | None:
        """Decode the next frame; None at the end of the last play."""
        return self._decoder.grab()

    def resume(self, sequence: int) -> None:
        """Go on at a frame, from the key frame before it where the file's times tell which."""
        if sequence < _WORTH_A_LANDING or not self._decoder.land(sequence):
            super().resume(sequence)

    def write(self, outputs: Outputs) -> None:
        """Copy the planes of the frame last grabbed into its slot, once."""
        self._decoder.write(outputs["image"])

    def close(self) -> None:
        """Close the file and log what was out of the ordinary."""
        self._decoder.close()


def _find(uri: str, context: PlanContext) -> str:
    """Return the absolute path that a URI means, which is then a file with something in it."""
    if uri.startswith(SAMPLE):
        from edgert.models.reader import resolve_media

        return str(resolve_media(uri))
    if "://" in uri:
        scheme = uri.partition("://")[0]
        raise MediaError(
            context.place,
            f"'{uri}': {scheme} is not supported yet",
            "give the path of a video file",
        )
    path = Path(context.folder, uri).expanduser().absolute()
    _check_file(path, f"{context.place}, file '{path}'")
    return str(path)


def _check_file(path: Path, place: str) -> None:
    try:
        found = path.stat()
    except OSError as error:
        raise MediaError(place, _reason(error), "check `uri` (or --input)") from error
    if stat.S_ISDIR(found.st_mode):
        raise MediaError(place, "is a directory", "use `kind: source.images` for its images")
    if stat.S_ISCHR(found.st_mode):
        raise MediaError(place, "is a device: not supported yet", "give a video file")
    if not stat.S_ISREG(found.st_mode):
        raise MediaError(place, "is not a regular file", "give a video file")
    if not found.st_size:
        raise MediaError(place, "is empty", "copy the file again")


def _reason(error: OSError) -> str:
    return (error.strerror or str(error)).lower()

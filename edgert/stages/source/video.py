"""``source.video``: the frames of a video file, or of a camera."""

from __future__ import annotations

import stat
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from edgert import isolate
from edgert.errors import MediaError
from edgert.paths import below
from edgert.stages.base import Outputs, PlanContext, Ports, Source, StageContext
from edgert.stages.source.address import SAMPLE, address_of, with_credentials
from edgert.stages.source.video_options import UNKNOWN_SIZE, VideoOptions
from edgert.tensor import FrameHeader, PortSpec, image_port

if TYPE_CHECKING:
    from edgert.stages.source.address import Address
    from edgert.stages.source.camera import Camera
    from edgert.stages.source.decode import VideoDecoder

PROBE_TIMEOUT_S = 30.0
PROBE = "edgert.stages.source.probe:probe_video"
_WORTH_A_LANDING = 100  # frames; fewer are decoded in the time


class VideoSource(Source):
    """Decodes a video file or a camera: planar frames where the codec gives them, turned upright.

    Frames that cannot be decoded are lost with a reason; a file that ends before it says it does
    is a fault, told at its end. A camera that is gone is tried again and again, and drops frames
    that the pipeline has no time for, the newest kept.
    """

    outputs: ClassVar = {"image": "image"}
    options: ClassVar = VideoOptions

    _from: Camera | VideoDecoder

    @classmethod
    def plan(
        cls, options: VideoOptions, inputs: Ports, context: PlanContext
    ) -> dict[str, PortSpec]:
        """Probe a file in a child process and size the slots by its largest frame.

        A camera need not be there.
        """
        if options.is_live:
            width, height = options.max_size or UNKNOWN_SIZE
            return {"image": image_port(width, height)}
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
        self.is_live = options.is_live
        self._file: VideoDecoder | None = None

    def open(self) -> None:
        """Open the file and its decoder; a camera is not waited for."""
        options: VideoOptions = self.settings
        if options.is_live:
            self._from = self.feed = self._camera(options)
            return
        from edgert.stages.source.decode import VideoDecoder

        self._from = self._file = VideoDecoder(
            self._port, self.context, options.loop, options.threads
        )

    def grab(self) -> FrameHeader | None:
        """Decode the next frame, or take the camera's newest; None at the end."""
        return self._from.grab()

    def resume(self, sequence: int) -> None:
        """Go on at a frame, from the key frame before it where the file's times tell which."""
        if sequence >= _WORTH_A_LANDING and self._file is not None:
            sequence = self._file.land(sequence)
        super().resume(sequence)

    def write(self, outputs: Outputs) -> None:
        """Copy the planes of the frame last grabbed into its slot, once."""
        self._from.write(outputs)

    def close(self) -> None:
        """Close the file or hang up, and log what was out of the ordinary."""
        self._from.close()

    def _camera(self, options: VideoOptions) -> Camera:
        from edgert.stages.source.camera import Camera, CameraPlan
        from edgert.stages.source.connection import Deadlines

        self._address()  # credentials that cannot be read are said now
        plan = CameraPlan(
            address=self._address,
            deadlines=Deadlines(
                options.open_timeout_s, options.first_frame_timeout_s, options.read_timeout_s
            ),
            reconnect=options.reconnect,
            decoder=options.decoder,
            threads=options.threads,
        )
        return Camera(plan, self._port, self.context)

    def _address(self) -> Address:
        options: VideoOptions = self.settings
        uri = options.uri
        if options.credentials is not None:
            file = below(self.context.folder, options.credentials)
            uri = with_credentials(uri, file, self.context.place)
        extra = {name: str(value) for name, value in options.options.items()}
        return address_of(uri, options.format, options.transport, extra)


def _find(uri: str, context: PlanContext) -> str:
    """Return the absolute path that a URI means, which is then a file with something in it."""
    if uri.startswith(SAMPLE):
        from edgert.models.reader import resolve_media

        return str(resolve_media(uri))
    path = below(context.folder, uri)
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
        raise MediaError(place, "is a device", "say with `format:` how FFmpeg opens it")
    if not stat.S_ISREG(found.st_mode):
        raise MediaError(place, "is not a regular file", "give a video file")
    if not found.st_size:
        raise MediaError(place, "is empty", "copy the file again")


def _reason(error: OSError) -> str:
    return (error.strerror or str(error)).lower()

"""The worker's half of ``sink.video``: a copy of each frame, drawn on and encoded.

An mp4 is written in fragments and made an ordinary one when it is closed (``hybrid_fragmented``),
so that even a kill leaves a file that plays up to its last fragment; mkv is so by nature. On a disk
that is full the fragment that did not fit is taken off again.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, cast

import av
import cv2
import numpy as np
from av.error import FFmpegError
from av.packet import Packet
from av.video.frame import VideoFrame
from av.video.reformatter import ColorRange, Colorspace
from av.video.stream import VideoStream

from edgert.errors import StageError, UserError
from edgert.stages.base import Inputs, StageContext
from edgert.stages.geometry import inverse
from edgert.stages.sink.continuous import ContinuousTimes
from edgert.stages.sink.draw import BoxPainter, Painter, Planes
from edgert.stages.sink.draw_class import ClassPainter
from edgert.stages.sink.draw_mask import MaskPainter
from edgert.stages.sink.draw_pose import PosePainter
from edgert.stages.sink.draw_text import TextPainter
from edgert.stages.sink.fragments import cut_back
from edgert.stages.sink.target import MEND
from edgert.tensor import IDENTITY, FrameHeader
from edgert.transport.address import Array
from edgert.transport.slot import Sample
from edgert.wording import counted

if TYPE_CHECKING:
    from edgert.stages.sink.video import VideoOptions

CONTAINER_OPTIONS = {
    ".mp4": {"movflags": "hybrid_fragmented", "flush_packets": "1"},
    ".mkv": {"flush_packets": "1", "cluster_time_limit": "1000"},
}
DEFAULT_FPS = 25.0
SECONDS_A_FRAGMENT = 2
SPACES = {"bt601": Colorspace.ITU601, "bt709": Colorspace.ITU709, "bt2020": Colorspace.ITU709}
AV_SPACES = {"bt601": 6, "bt709": 1, "bt2020": 9}  # AVColorSpace
AV_RANGES = {"limited": 1, "full": 2}  # AVColorRange
GREY = 128
PAINTERS: dict[str, type[Painter]] = {
    "segmentation": MaskPainter,
    "detections": BoxPainter,
    "poses": PosePainter,
    "classification": ClassPainter,
    "lines": TextPainter,
}

Size: TypeAlias = tuple[int, int]


class Recorder:
    """One video file being written.

    Attributes:
        scaled: Frames of another size than the first, scaled to it.
        restamped: Frames whose time did not grow in the units of the file.
    """

    def __init__(self, path: Path, options: VideoOptions, context: StageContext) -> None:
        self._path, self._options, self._context = path, options, context
        self._encoder = _encoder_name(options.codec, context)
        # MPEG-4 counts time in at most 65535 parts of a second.
        self._ticks = 60_000 if self._encoder == "mpeg4" else 90_000
        self._fps = options.fps or context.inputs["image"].attributes.get("fps") or DEFAULT_FPS
        self._size: Size = (0, 0)
        self._last = -1
        self._times = ContinuousTimes()
        self._bgr: VideoFrame | None = None
        self._taken = self._muxed = 0
        self._begins: list[int] = []  # first frame of each fragment
        self.scaled = 0
        self.restamped = 0
        cv2.setNumThreads(context.threads)
        self._container = self._make()
        self._stream: VideoStream | None = None
        self._painters: list[tuple[str, Painter]] = []
        context.report["codec"] = self._encoder

    def add(self, inputs: Inputs) -> None:
        """Draw the results of a frame on a copy of its image and encode it."""
        image = inputs["image"]
        header = image.header
        frame = self._copy(image, header)
        stream = self._stream or self._start(frame, header)
        to_picture = IDENTITY if header.transform == IDENTITY else inverse(header.transform)
        for port, painter in self._painters:
            painter.paint(_planes(frame), inputs[port], to_picture)
        if (frame.width, frame.height) != self._size:
            self.scaled += 1
            frame = frame.reformat(*self._size)
        frame.pts, frame.time_base = self._pts(header), Fraction(1, self._ticks)
        frame.duration = round(self._ticks / self._fps)
        self._encode(stream, frame)

    def close(self) -> None:
        """Write what the encoder still holds and the end of the file."""
        log, place = self._context.log, self._context.place
        if self._stream is None:
            self._container.close()
            self._path.unlink(missing_ok=True)
            log.warning("%s: no frame came: '%s' is not there", place, self._path)
            return
        try:
            self._mux(self._stream.encode(None))
            self._container.close()
        except FFmpegError as error:
            self._cut_back()
            raise self._failed(error) from error
        if self.scaled:
            log.warning("%s: scaled: %s of another size", place, counted(self.scaled, "frame"))
        if self.restamped:
            log.warning(
                "%s: %s came too soon after another", place, counted(self.restamped, "frame")
            )

    def _cut_back(self) -> None:
        """Leave what plays to its end of a file that could not be written to its end."""
        with contextlib.suppress(OSError):  # FFmpegError is one; what is wrong is told already
            self._container.close()
        if self._path.suffix.lower() != ".mp4":
            return
        there = self._muxed
        with contextlib.suppress(OSError):
            there = min([there, *self._begins[cut_back(self._path) :]])
        said, missing = "%s: up to %s at the end of '%s' did not fit", self._taken - there
        if missing:
            frames = counted(missing, "frame")
            self._context.log.error(said, self._context.place, frames, self._path)

    def _make(self) -> av.container.OutputContainer:
        place = f"{self._context.place}, file '{self._path}'"
        try:
            options = CONTAINER_OPTIONS[self._path.suffix.lower()]
            return av.open(f"file:{self._path}", "w", options=options)
        except OSError as error:  # FFmpegError is one
            raise UserError(place, f"cannot be written: {error.strerror}", MEND) from error

    def _start(self, frame: VideoFrame, header: FrameHeader) -> VideoStream:
        """Set up the encoder for frames like the first."""
        self._size = (frame.width, frame.height)
        rate = Fraction(self._fps).limit_denominator(10_000)
        added = self._container.add_stream(self._encoder, rate, self._encoder_options())
        stream = cast("VideoStream", added)
        stream.width, stream.height = self._size
        stream.pix_fmt = "yuv420p"
        codec = stream.codec_context
        codec.time_base = Fraction(1, self._ticks)
        codec.thread_count = self._context.threads
        matrix, colour_range = _colours(header)
        codec.colorspace = AV_SPACES[matrix]
        codec.color_range = AV_RANGES[colour_range]
        self._painters = [
            (name, PAINTERS[port.kind](port, matrix, frame.height))
            for name, port in self._context.inputs.items()
            if name != "image"
        ]
        self._stream = stream
        return stream

    def _encoder_options(self) -> dict[str, str]:
        quality = self._options.quality
        group = {"g": str(max(1, round(self._fps * SECONDS_A_FRAGMENT)))}
        if self._encoder == "mpeg4":
            return {
                **group,
                "flags": "+qscale",
                "global_quality": str(118 * (1 + quality * 30 // 51)),
            }
        # No B-frames: in a fragmented mp4 they would shift every time by their delay.
        return {**group, "preset": "veryfast", "crf": str(quality), "bf": "0"}

    def _pts(self, header: FrameHeader) -> int:
        pts = self._times.time_of(header) * self._ticks // 1_000_000_000
        if pts <= self._last:
            self.restamped += 1
            pts = self._last + 1
        self._last = pts
        return pts

    def _encode(self, stream: VideoStream, frame: VideoFrame) -> None:
        try:
            self._mux(stream.encode(frame))
        except FFmpegError as error:
            raise self._failed(error) from error
        self._taken += 1

    def _mux(self, packets: Sequence[Packet[VideoStream]]) -> None:
        keys = (number for number, packet in enumerate(packets, self._muxed) if packet.is_keyframe)
        self._begins.extend(keys)
        self._container.mux(packets)
        self._muxed += len(packets)

    def _failed(self, error: FFmpegError) -> StageError:
        place = f"{self._context.place}, file '{self._path}'"
        return StageError(place, f"cannot be written: {error.strerror}", "make room, or see to it")

    def _copy(self, image: Sample, header: FrameHeader) -> VideoFrame:
        tensors = image.tensors
        for name, ffmpeg_name in (("bgr", "bgr24"), ("rgb", "rgb24")):
            if name in tensors:
                return self._from_packed(tensors[name], ffmpeg_name, header)
        height, width = tensors["y"].shape
        frame = VideoFrame(_even(width), _even(height), "yuv420p")
        for plane, source in zip(_planes(frame), _three_planes(image), strict=True):
            self._fill(plane, source)
        return frame

    def _from_packed(self, pixels: Array, name: str, header: FrameHeader) -> VideoFrame:
        height, width = _even(pixels.shape[0]), _even(pixels.shape[1])
        packed = self._bgr
        if packed is None or (packed.width, packed.height) != (width, height):
            packed = self._bgr = VideoFrame(width, height, name)
        buffer: Any = packed.planes[0]
        rows = np.frombuffer(buffer, np.uint8).reshape(height, -1)
        self._fill(rows[:, : width * 3].reshape(height, width, 3), pixels)
        space = SPACES[_colours(header)[0]]
        return packed.reformat(
            format="yuv420p", dst_colorspace=space, dst_color_range=ColorRange.MPEG
        )

    def _fill(self, into: Array, source: Array | int) -> None:
        """Copy a plane, counted; what is too many for an odd size repeats the edge."""
        if isinstance(source, int):
            into[...] = source
            return
        height, width = source.shape[:2]
        self._context.copy(source, into[:height, :width])
        into[:height, width:] = into[:height, width - 1 : width]
        into[height:] = into[height - 1 : height]


def _three_planes(image: Sample) -> tuple[Array | int, Array | int, Array | int]:
    tensors = image.tensors
    if "u" in tensors:
        return tensors["y"], tensors["u"], tensors["v"]
    if "uv" in tensors:
        return tensors["y"], tensors["uv"][..., 0], tensors["uv"][..., 1]
    return tensors["y"], GREY, GREY


def _planes(frame: VideoFrame) -> Planes:
    """Return y, u and v of a frame as arrays to be written to."""
    y, u, v = (_plane(plane) for plane in frame.planes)
    return y, u, v


def _plane(plane: Any) -> Array:
    rows: Array = np.frombuffer(plane, np.uint8).reshape(-1, plane.line_size)
    return rows[: plane.height, : plane.width]


def _colours(header: FrameHeader) -> tuple[str, str]:
    """Return matrix and range of what is encoded: colours of RGB are converted here."""
    if header.pixel_format in ("bgr24", "rgb24"):
        return "bt601", "limited"
    return header.colour_matrix, header.colour_range


def _even(size: int) -> int:
    return size + size % 2


def _encoder_name(codec: str, context: StageContext) -> str:
    has_h264 = "libx264" in av.codecs_available
    if codec == "mpeg4" or (codec == "auto" and not has_h264):
        return "mpeg4"
    if not has_h264:
        raise UserError(
            context.place, "this build of FFmpeg has no encoder for H.264", "set `codec: mpeg4`"
        )
    return "libx264"

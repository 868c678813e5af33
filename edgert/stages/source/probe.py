"""What a video or a directory of images holds; runs in a child process, never in the supervisor."""

from __future__ import annotations

from typing import Any

from av.container import InputContainer
from av.error import FFmpegError
from av.video.frame import VideoFrame
from av.video.stream import VideoStream

from edgert.errors import MediaError
from edgert.stages.source.container import open_video
from edgert.stages.source.picture import format_of, quarter_turns

MAX_PACKETS = 500


def probe_video(path: str, place: str) -> dict[str, Any]:
    """Return size (upright), pixel format, rate and length of a video, after decoding one frame.

    Raises:
        MediaError: It is not a video, or no frame of it can be decoded.
    """
    where = f"{place}, file '{path}'"
    container, stream = open_video(path, where)
    with container:
        frame = _first_frame(container, stream, where)
        turns = quarter_turns(frame)
        width, height = frame.width, frame.height
        if turns % 2:
            width, height = height, width
        return {
            "width": width,
            "height": height,
            "pixel_format": format_of(frame),
            "fps": float(stream.average_rate or stream.guessed_rate or 0) or 25.0,
            "frames": stream.frames,
            "rotation": turns * 90,
            "codec": stream.codec_context.name,
        }


def _first_frame(container: InputContainer, stream: VideoStream, place: str) -> VideoFrame:
    reason = "it has none"
    packets = container.demux(stream)
    for _ in range(MAX_PACKETS):
        try:
            packet = next(packets, None)
            if packet is None:
                break
            for frame in packet.decode():
                if isinstance(frame, VideoFrame):
                    return frame
        except FFmpegError as error:
            reason = (error.strerror or str(error)).lower()
            packets = container.demux(stream)
    raise MediaError(
        place, f"no frame of it can be decoded ({reason})", "give another file, or copy it again"
    )

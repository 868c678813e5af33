"""Opens a video file, for the probe and the decoder alike."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

import av
from av.container import InputContainer
from av.error import FFmpegError
from av.stream import Disposition
from av.video.stream import VideoStream

from edgert.errors import MediaError

# What names other files and plays those: a playlist is small text that anybody can send.
PLAYLISTS = frozenset(("concat", "dash", "hls", "imf", "sdp", "vobsub", "webm_dash_manifest"))
# libavformat may follow playlists and chained protocols out of a hostile file: this one file only.
OPEN_OPTIONS = {
    "protocol_whitelist": "file",
    "format_whitelist": ",".join(sorted(av.formats_available - PLAYLISTS)),
}
# Demuxers that take nearly anything for a picture: text art, and single images.
NOT_VIDEO = ("tty", "image2", "_pipe", "bin", "xbin", "idf", "adf")
EBML_ID = b"\x1a\x45\xdf\xa3"
SEGMENT_ID = b"\x18\x53\x80\x67"
RIFF_HEAD_BYTES = 8
UNKNOWN_RIFF_SIZES = (0, 0xFFFFFFFF)


def open_video(path: str, place: str) -> tuple[InputContainer, VideoStream]:
    """Open a file and find its video stream.

    Raises:
        MediaError: It is not a video this build of FFmpeg can decode.
    """
    try:
        container = av.open(f"file:{path}", options=OPEN_OPTIONS)
    except av.error.PermissionError as error:
        raise MediaError(
            place, "must not be read by this user", "let it be read, or give another"
        ) from error
    except av.error.ArgumentError as error:
        raise MediaError(
            place,
            "is not a video, or a playlist that names others",
            "give a video file",
        ) from error
    except FFmpegError as error:
        raise MediaError(
            place,
            f"is not a video, or its start or end is missing ({said(error)})",
            "give a video file, or copy it again",
        ) from error
    try:
        return container, _video_stream(container, place)
    except MediaError:
        container.close()
        raise


def said(error: FFmpegError) -> str:
    """Return what FFmpeg says of an error, without its number and its file."""
    return (error.strerror or str(error)).lower()


def _video_stream(container: InputContainer, place: str) -> VideoStream:
    name = container.format.name
    if any(name == one or name.endswith(one) for one in NOT_VIDEO):
        raise MediaError(
            place,
            f"is not a video (FFmpeg takes it for '{name}')",
            "use `kind: source.images` for images",
        )
    for stream in container.streams.video:
        if not stream.disposition & Disposition.attached_pic:
            if _can_decode(stream):
                return stream
            raise MediaError(
                place,
                "its codec cannot be decoded by this build of FFmpeg",
                "convert it, for example to H.264",
            )
    raise MediaError(place, "has no video stream", "give a file with pictures in it")


def _can_decode(stream: VideoStream) -> bool:
    codec: Any = None
    with suppress(AttributeError, RuntimeError):
        codec = stream.codec_context
    return codec is not None


def missing_bytes(path: str) -> int | None:
    """Return by how many bytes a Matroska or AVI file is shorter than it says.

    None where it does not say so, as files of other kinds. Matroska counts no frames, and FFmpeg
    shortens the duration of an AVI without its index: the length is the only thing that tells of
    a cut.
    """
    with Path(path).open("rb") as file:
        magic = file.read(4)
        if magic == EBML_ID:
            end = _end_of_matroska(file)
        elif magic == b"RIFF":
            end = _end_of_riff(file)
        else:
            return None
        return None if end is None else max(0, end - os.fstat(file.fileno()).st_size)


def _end_of_matroska(file: IO[bytes]) -> int | None:
    head = _element_size(file)
    file.seek(head or 0, os.SEEK_CUR)
    if file.read(4) != SEGMENT_ID:
        return None
    size = _element_size(file)
    return None if size is None else file.tell() + size  # without a size it was recorded live


def _end_of_riff(file: IO[bytes]) -> int | None:
    """Return where the last RIFF chunk ends; None where it was never closed and has no size."""
    end = 0
    file.seek(0)
    while (head := file.read(8))[:4] == b"RIFF" and len(head) == RIFF_HEAD_BYTES:
        size = int.from_bytes(head[4:], "little")
        if size in UNKNOWN_RIFF_SIZES:
            return None
        end = file.tell() + size
        file.seek(end + size % 2)  # a large AVI has several, one behind the other
    return end


def _element_size(file: IO[bytes]) -> int | None:
    """Read an EBML size: the leading zero bits of its first byte tell its length."""
    first = file.read(1)
    if not first or not first[0]:
        return None
    length = 9 - first[0].bit_length()
    value = int.from_bytes(first + file.read(length - 1), "big") & ((1 << 7 * length) - 1)
    return None if value == (1 << 7 * length) - 1 else value

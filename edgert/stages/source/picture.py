"""How a decoded frame becomes the planes of a slot: format, colours, rotation, scale."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from av.video.frame import VideoFrame
from av.video.reformatter import ColorRange, Colorspace

from edgert.errors import FrameLostError
from edgert.tensor import IDENTITY, PIXEL_FORMATS
from edgert.transport.address import Array
from edgert.transport.slot import Loan

# FFmpeg's pixel formats that lie in memory as one of ours; all others are converted by libswscale.
NATIVE = {
    "yuv420p": "i420",
    "yuvj420p": "i420",
    "nv12": "nv12",
    "gray": "gray8",
    "bgr24": "bgr24",
    "rgb24": "rgb24",
}
FFMPEG_NAMES = {
    "i420": "yuv420p",
    "nv12": "nv12",
    "gray8": "gray",
    "bgr24": "bgr24",
    "rgb24": "rgb24",
}
CHANNELS = {"y": 1, "u": 1, "v": 1, "uv": 2, "bgr": 3, "rgb": 3}
CHROMA = frozenset(("u", "v", "uv"))

# AVColorSpace -> ours. SMPTE 240M (7) differs from BT.709 by less than a level.
MATRICES = {1: "bt709", 4: "bt601", 5: "bt601", 6: "bt601", 7: "bt709", 9: "bt2020", 10: "bt2020"}
FULL_RANGE = 2
HD_HEIGHT = 720


def format_of(frame: VideoFrame) -> str:
    """Return the pixel format in which a frame is handed on."""
    return _native_format(frame) or "i420"


def _native_format(frame: VideoFrame) -> str | None:
    # Rows from the bottom up (raw AVI) have a negative stride, which PyAV's buffers get wrong.
    return None if frame.planes[0].line_size < 0 else NATIVE.get(frame.format.name)


def quarter_turns(frame: VideoFrame) -> int:
    """Return by how many quarter turns counter-clockwise a frame is to be turned, 0 to 3."""
    return round(frame.rotation / 90) % 4


@dataclass(frozen=True, slots=True)
class Plane:
    """One plane of a slot: its name, its shape, and the rows and bytes a row in the frame."""

    name: str
    shape: tuple[int, ...]
    rows: int
    row_bytes: int


@dataclass(frozen=True, slots=True)
class Picture:
    """All that frames of one look have in common, worked out once.

    Attributes:
        width: Width of the source frame, upright.
        height: Height of the source frame, upright.
        transform: From pixels of the slot to pixels of the source frame.
        pixel_format: What is written.
        colour_matrix: Of the pixels written.
        colour_range: Of the pixels written.
        turns: Quarter turns counter-clockwise.
        planes: What is written, in the order of the frame's planes.
        conversion: Arguments for libswscale; None where the frame can be copied as it is.
        is_scaled: Whether it is larger than the slot and therefore scaled down.
    """

    width: int
    height: int
    transform: tuple[float, float, float, float, float, float]
    pixel_format: str
    colour_matrix: str
    colour_range: str
    turns: int
    planes: tuple[Plane, ...]
    conversion: dict[str, Any] | None
    is_scaled: bool


def look_of(frame: VideoFrame) -> tuple[Any, ...]:
    """Return what decides how a frame is written; frames of one video nearly all share it."""
    return (
        frame.width,
        frame.height,
        frame.format.name,
        frame.rotation,
        frame.colorspace,
        frame.color_range,
        frame.planes[0].line_size < 0,
    )


def picture_of(frame: VideoFrame, pixel_format: str, max_width: int, max_height: int) -> Picture:
    """Work out how frames like this one are written into slots of a port."""
    turns = quarter_turns(frame)
    width, height = _turned(frame.width, frame.height, turns)
    factor = min(1.0, max_width / width, max_height / height)
    new_width = max(1, int(width * factor)) if factor < 1 else width
    new_height = max(1, int(height * factor)) if factor < 1 else height
    matrix, colour_range = _colours(frame)
    is_direct = factor == 1 and _native_format(frame) == pixel_format
    flat_width, flat_height = _turned(new_width, new_height, turns)
    return Picture(
        width,
        height,
        (width / new_width, 0.0, 0.0, 0.0, height / new_height, 0.0) if factor < 1 else IDENTITY,
        pixel_format,
        matrix,
        colour_range,
        turns,
        _planes(pixel_format, flat_width, flat_height, turns),
        None if is_direct else _conversion(frame, pixel_format, flat_width, flat_height),
        factor < 1,
    )


def write_picture(frame: VideoFrame, picture: Picture, loan: Loan) -> int:
    """Write a frame into a slot; return the bytes that libswscale had to write before."""
    moved = 0
    if picture.conversion is not None:
        frame = frame.reformat(**picture.conversion)
        if frame.planes[0].line_size < 0:
            raise FrameLostError("its rows run from the bottom up, which is not supported")
        moved = sum(plane.rows * plane.row_bytes for plane in picture.planes)
    source: Any  # a buffer, which its type does not say
    for plane, source in zip(picture.planes, frame.planes, strict=False):
        rows = np.frombuffer(source, np.uint8).reshape(-1, source.line_size)
        pixels = rows[: plane.rows, : plane.row_bytes]
        into = loan.tensor(plane.name, plane.shape)
        if picture.turns:
            _turn(pixels, into, picture.turns)
        elif into.ndim == 2:
            into[...] = pixels
        else:
            into.reshape(plane.rows, plane.row_bytes)[...] = pixels
    return moved


def _turned(width: int, height: int, turns: int) -> tuple[int, int]:
    return (height, width) if turns % 2 else (width, height)


def _colours(frame: VideoFrame) -> tuple[str, str]:
    """Return matrix and range of a frame's colours, after conversion where it is one of RGB."""
    if frame.format.is_rgb:
        return "bt601", "limited"
    unsaid = "bt709" if frame.height >= HD_HEIGHT else "bt601"
    is_full = int(frame.color_range) == FULL_RANGE or frame.format.name.startswith(("yuvj", "gray"))
    return MATRICES.get(int(frame.colorspace), unsaid), "full" if is_full else "limited"


def _planes(pixel_format: str, width: int, height: int, turns: int) -> tuple[Plane, ...]:
    planes = []
    for name in PIXEL_FORMATS[pixel_format]:
        rows, columns = height, width
        if name in CHROMA:
            rows, columns = (height + 1) // 2, (width + 1) // 2
        channels = CHANNELS[name]
        shape = (columns, rows) if turns % 2 else (rows, columns)
        depth = (channels,) if channels > 1 else ()
        planes.append(Plane(name, (*shape, *depth), rows, columns * channels))
    return tuple(planes)


def _conversion(frame: VideoFrame, pixel_format: str, width: int, height: int) -> dict[str, Any]:
    matrix, colour_range = _colours(frame)
    wanted_range = ColorRange.JPEG if colour_range == "full" else ColorRange.MPEG
    space = {
        "bt601": Colorspace.ITU601,
        "bt709": Colorspace.ITU709,
        "bt2020": Colorspace.ITU709,
    }[matrix]
    is_rgb = frame.format.is_rgb
    return {
        "width": width,
        "height": height,
        "format": FFMPEG_NAMES[pixel_format],
        "src_colorspace": None if is_rgb else space,
        "dst_colorspace": space,
        "src_color_range": ColorRange.JPEG if is_rgb else wanted_range,
        "dst_color_range": wanted_range,
    }


def _turn(pixels: Array, into: Array, turns: int) -> None:
    """Turn a plane while it is written. OpenCV loads for rotated videos only."""
    import cv2

    codes = (0, cv2.ROTATE_90_COUNTERCLOCKWISE, cv2.ROTATE_180, cv2.ROTATE_90_CLOCKWISE)
    source = pixels.reshape(pixels.shape[0], -1, *into.shape[2:])
    cv2.rotate(source, codes[turns], dst=into)

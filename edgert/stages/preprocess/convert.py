"""The pixels' way from a frame's planes into a model's input: scale first, then convert colours.

    planes --resize--> small planes --colour--> small picture --split, scale--> model's input

Everything after the first step works on the small picture, in buffers that are used again for
every frame. Only a worker that has opened its stage imports this module.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import prod

import cv2
import numpy as np

from edgert.errors import FrameLostError
from edgert.models.describe import ImageInput
from edgert.stages.geometry import Size
from edgert.stages.preprocess.colour import CHANNELS, grey_levels, value_table, yuv_matrix
from edgert.stages.preprocess.geometry import Placement, place
from edgert.tensor import PIXEL_FORMATS, FrameHeader, TensorSpec
from edgert.transport.address import Array
from edgert.transport.slot import Loan

Planes = Mapping[str, Array]
# Fills an array with a plane, or with the part of it that is wanted, in the array's own size.
Resample = Callable[[Array, Array], None]
INTERPOLATIONS = {"linear": cv2.INTER_LINEAR, "area": cv2.INTER_AREA}
# cv2.LUT takes no half floats: it only moves the bytes, so it may think them integers.
_MOVED_AS = {"f16": "uint16", "i8": "uint8"}
_MAX_BORDERS = 1024


class Scratch:
    """Buffers that are used again: one for each role, as large as its largest use so far."""

    def __init__(self) -> None:
        self._buffers: dict[str, Array] = {}

    def view(self, role: str, shape: tuple[int, ...]) -> Array:
        """Return a u8 array of this shape; it keeps what the last use left there."""
        size = prod(shape)
        buffer = self._buffers.get(role)
        if buffer is None or buffer.size < size:
            buffer = self._buffers[role] = np.empty(size, np.uint8)
        return buffer[:size].reshape(shape)


class Painter:
    """Makes the small picture in the model's order of colours from the planes of a frame."""

    def __init__(self, colour: str, resample: Resample) -> None:
        self._colour = colour
        self._resample = resample
        self._scratch = Scratch()
        self._grey_levels = grey_levels()
        is_grey = colour == "GRAY"
        self._paint: dict[str, Callable[[Planes, FrameHeader, Array], Array]] = {
            "i420": self._luma if is_grey else self._planar,
            "nv12": self._luma if is_grey else self._planar,
            "gray8": self._grey if is_grey else self._spread_grey,
            "bgr24": self._packed,
            "rgb24": self._packed,
        }
        self._packed_code = {
            ("bgr24", "RGB"): cv2.COLOR_BGR2RGB,
            ("rgb24", "BGR"): cv2.COLOR_RGB2BGR,
            ("bgr24", "GRAY"): cv2.COLOR_BGR2GRAY,
            ("rgb24", "GRAY"): cv2.COLOR_RGB2GRAY,
        }
        self._i420_code = cv2.COLOR_YUV2RGB_I420 if colour == "RGB" else cv2.COLOR_YUV2BGR_I420

    def paint(self, planes: Planes, header: FrameHeader, into: Array) -> Array:
        """Return the picture in the size of ``into``: in ``into`` itself or in a buffer of ours."""
        return self._paint[header.pixel_format](planes, header, into)

    def _planar(self, planes: Planes, header: FrameHeader, into: Array) -> Array:
        if header.colour_matrix == "bt601" and header.colour_range == "limited":
            return self._planar_bt601(planes, into)
        y, u, v = self._small_planes(into.shape[:2], into.shape[:2])
        self._resample(planes["y"], y)
        self._resize_chroma(planes, u, v)
        yuv = self._scratch.view("yuv", into.shape)
        cv2.merge([y, u, v], dst=yuv)
        matrix = yuv_matrix(header.colour_matrix, header.colour_range, self._colour)
        cv2.transform(yuv, matrix, dst=into)
        return into

    def _planar_bt601(self, planes: Planes, into: Array) -> Array:
        # cv2 has this one conversion ready, with chroma of half the size; it wants even sizes.
        height, width = into.shape[:2]
        even = (height + height % 2, width + width % 2)
        y, u, v = self._small_planes(even, (even[0] // 2, even[1] // 2))
        self._resample(planes["y"], y[:height, :width])
        self._resize_chroma(planes, u, v)
        sheet = self._scratch.view("planes", (even[0] * 3 // 2, even[1]))
        if even == (height, width):
            cv2.cvtColor(sheet, self._i420_code, dst=into)
            return into
        picture = self._scratch.view("even", (*even, 3))
        cv2.cvtColor(sheet, self._i420_code, dst=picture)
        return picture[:height, :width]

    def _small_planes(
        self, luma: tuple[int, ...], chroma: tuple[int, ...]
    ) -> tuple[Array, Array, Array]:
        """Return three arrays one behind the other, as cv2 wants the planes of I420."""
        y_size, size = prod(luma), prod(chroma)
        flat = self._scratch.view("planes", (y_size + 2 * size,))
        y, u = flat[:y_size], flat[y_size : y_size + size]
        return y.reshape(luma), u.reshape(chroma), flat[y_size + size :].reshape(chroma)

    def _resize_chroma(self, planes: Planes, u: Array, v: Array) -> None:
        if "uv" not in planes:
            self._resample(planes["u"], u)
            self._resample(planes["v"], v)
            return
        pairs = self._scratch.view("uv", (*u.shape, 2))
        self._resample(planes["uv"], pairs)
        cv2.split(pairs, [u, v])

    def _luma(self, planes: Planes, header: FrameHeader, into: Array) -> Array:
        self._resample(planes["y"], into)
        if header.colour_range == "limited":
            cv2.LUT(into, self._grey_levels, dst=into)
        return into

    def _grey(self, planes: Planes, _: FrameHeader, into: Array) -> Array:
        self._resample(planes["y"], into)
        return into

    def _spread_grey(self, planes: Planes, _: FrameHeader, into: Array) -> Array:
        grey = self._scratch.view("grey", into.shape[:2])
        self._resample(planes["y"], grey)
        cv2.cvtColor(grey, cv2.COLOR_GRAY2BGR, dst=into)
        return into

    def _packed(self, planes: Planes, header: FrameHeader, into: Array) -> Array:
        plane = planes[PIXEL_FORMATS[header.pixel_format][0]]
        code = self._packed_code.get((header.pixel_format, self._colour))
        if code is None:
            self._resample(plane, into)
            return into
        small = self._scratch.view("packed", (*into.shape[:2], 3))
        self._resample(plane, small)
        cv2.cvtColor(small, code, dst=into)
        return into


def resizing(interpolation: str) -> Resample:
    """Return what scales a whole plane.

    Args:
        interpolation: A key of ``INTERPOLATIONS``.
    """
    method = INTERPOLATIONS[interpolation]

    def resize(plane: Array, into: Array) -> None:
        cv2.resize(plane, (into.shape[1], into.shape[0]), dst=into, interpolation=method)

    return resize


class InputWriter:
    """Writes pictures into one input of a model.

    Args:
        image: How the model wants its picture.
        spec: Element type and shape of the input.
        resample: What makes planes of the size wanted of those of a frame.
        scale_up: Whether a letterbox enlarges small pictures.
    """

    def __init__(
        self, image: ImageInput, spec: TensorSpec, resample: Resample, *, scale_up: bool
    ) -> None:
        self._image = image
        self._scale_up = scale_up
        self._channels = CHANNELS[image.colour]
        # One channel lies the same in both layouts.
        self._is_planar = image.layout == "NCHW" or self._channels == 1
        shape = tuple(size or 1 for size in spec.shape)
        height, width = shape[2:] if image.layout == "NCHW" else shape[1:3]
        self._size = (width, height)
        self._table = value_table(image, spec.dtype)
        self._packed_table = np.ascontiguousarray(self._table.T[None])
        self._moved_as = _MOVED_AS.get(spec.dtype)
        levels = np.arange(256)
        self._is_identity = spec.dtype in {"u8", "f32"} and bool((self._table == levels).all())
        self._writes_bytes = self._is_identity and spec.dtype == "u8"
        self._painter = Painter(image.colour, resample)
        self._scratch = Scratch()
        self._borders: dict[int, Placement] = {}

    def write(self, planes: Planes, header: FrameHeader, loan: Loan) -> Placement:
        """Write one frame's picture, and where it is not there yet, the border around it.

        Raises:
            FrameLostError: The picture has no pixels, or lacks a plane of its pixel format.
        """
        target = loan.tensor(self._image.tensor)
        return self.write_into(target[0], planes, header, size_of(planes, header), loan.address)

    def write_into(
        self, target: Array, planes: Planes, header: FrameHeader, size: Size, address: int
    ) -> Placement:
        """Write one picture into one item of the input.

        Args:
            target: The item, without the dimension of the batch.
            planes: Planes of the frame.
            header: Says how the planes are to be read.
            size: Width and height of what ``resample`` takes of the planes.
            address: Where ``target`` lies: a border that is there stays.
        """
        placed = place(self._image.resize, size, self._size, scale_up=self._scale_up)
        if self._is_planar:
            target = target.reshape(self._channels, self._size[1], self._size[0])
        self._write_border(target, placed, address)
        rows = slice(placed.top, placed.top + placed.height)
        columns = slice(placed.left, placed.left + placed.width)
        if self._is_planar:
            self._write_planar(planes, header, target[:, rows, columns])
        else:
            self._write_packed(planes, header, target[rows, columns])
        return placed

    def _write_planar(self, planes: Planes, header: FrameHeader, window: Array) -> None:
        channels, height, width = window.shape
        if channels == 1:
            into = window[0] if self._writes_bytes else self._scratch.view("plane", (height, width))
            self._put(self._painter.paint(planes, header, into), window[0], self._table[0])
            return
        into = self._scratch.view("picture", (height, width, channels))
        picture = self._painter.paint(planes, header, into)
        if self._writes_bytes:
            cv2.split(picture, list(window))
            return
        split = self._scratch.view("split", window.shape)
        planes_of_split = list(split)
        cv2.split(picture, planes_of_split)
        if self._is_identity:
            np.copyto(window, split)
            return
        for plane, part, table in zip(planes_of_split, window, self._table, strict=True):
            self._put(plane, part, table)

    def _write_packed(self, planes: Planes, header: FrameHeader, window: Array) -> None:
        into = window if self._writes_bytes else self._scratch.view("picture", window.shape)
        picture = self._painter.paint(planes, header, into)
        self._put(picture, window, self._packed_table)

    def _put(self, levels: Array, window: Array, table: Array) -> None:
        if levels is window:
            return
        if self._is_identity:
            np.copyto(window, levels)
        elif self._moved_as:
            cv2.LUT(levels, table.view(self._moved_as), dst=window.view(self._moved_as))
        else:
            cv2.LUT(levels, table, dst=window)

    def _write_border(self, target: Array, placed: Placement, address: int) -> None:
        """Fill the border, unless this slot has it from an earlier frame: its memory persists."""
        if self._borders.get(address) == placed:
            return
        if self._is_planar:
            target = target.transpose(1, 2, 0)
        value = self._table[:, self._image.pad]
        bottom, right = placed.top + placed.height, placed.left + placed.width
        target[: placed.top] = value
        target[bottom:] = value
        target[placed.top : bottom, : placed.left] = value
        target[placed.top : bottom, right:] = value
        if len(self._borders) >= _MAX_BORDERS:
            self._borders.clear()
        self._borders[address] = placed


def size_of(planes: Planes, header: FrameHeader) -> Size:
    """Return width and height of a frame's picture.

    Raises:
        FrameLostError: The picture has no pixels, or lacks a plane of its pixel format.
    """
    for name in PIXEL_FORMATS[header.pixel_format]:
        if name not in planes:
            raise FrameLostError(f"a frame said to be {header.pixel_format} has no plane {name!r}")
    height, width = planes[PIXEL_FORMATS[header.pixel_format][0]].shape[:2]
    if width == 0 or height == 0:
        raise FrameLostError(f"a picture of {width}x{height} has no pixels")
    return width, height

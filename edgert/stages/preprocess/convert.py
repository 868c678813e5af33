"""The pixels' way from a frame's planes into a model's input: scale first, then convert colours.

    planes --resize--> small planes --colour--> small picture --split, scale--> model's input
    |------------------- paint.py -------------------------|

Only a worker that has opened its stage imports this module.
"""

from __future__ import annotations

from collections.abc import Sequence

import cv2
import numpy as np

from edgert.errors import FrameLostError
from edgert.models.describe import ImageInput
from edgert.stages.geometry import Size
from edgert.stages.preprocess.colour import CHANNELS, value_table
from edgert.stages.preprocess.geometry import Placement, choose, place
from edgert.stages.preprocess.paint import Painter, Planes, Resample, Scratch
from edgert.tensor import PIXEL_FORMATS, FrameHeader, TensorSpec
from edgert.transport.address import Array
from edgert.transport.slot import Loan

# cv2.LUT takes no half floats: it only moves the bytes, so it may think them integers.
_MOVED_AS = {"f16": "uint16", "i8": "uint8"}
_MAX_BORDERS = 1024
_LEVELS = [*range(256)]


class InputWriter:
    """Writes pictures into one input of a model.

    Args:
        image: How the model wants its picture.
        spec: Element type and shape of the input, the largest one.
        resample: What makes planes of the size wanted of those of a frame.
        scale_up: Whether a letterbox enlarges small pictures.
        sizes: Width and height of each size that the input may have, where it has several.
    """

    def __init__(
        self,
        image: ImageInput,
        spec: TensorSpec,
        resample: Resample,
        *,
        scale_up: bool,
        sizes: Sequence[Size] = (),
    ) -> None:
        self._image = image
        self._scale_up = scale_up
        self._channels = CHANNELS[image.colour]
        # One channel lies the same in both layouts.
        self._is_planar = image.layout == "NCHW" or self._channels == 1
        shape = tuple(size or 1 for size in spec.shape)
        height, width = shape[2:] if image.layout == "NCHW" else shape[1:3]
        self._sizes = tuple(sizes) or ((width, height),)
        self._shapes = {size: _shape_of(image.layout, self._channels, size) for size in self._sizes}
        self._table = value_table(image, spec.dtype)
        self._packed_table = np.ascontiguousarray(self._table.T[None])
        self._moved_as = _MOVED_AS.get(spec.dtype)
        leaves_levels = all(row == _LEVELS for row in self._table.tolist())
        self._is_identity = spec.dtype in {"u8", "f32"} and leaves_levels
        self._writes_bytes = self._is_identity and spec.dtype == "u8"
        self._painter = Painter(image.colour, resample)
        self._scratch = Scratch()
        self._borders: dict[int, Placement] = {}

    def write(self, planes: Planes, header: FrameHeader, loan: Loan) -> Placement:
        """Write one frame's picture, and where it is not there yet, the border around it.

        Raises:
            FrameLostError: The picture has no pixels, or lacks a plane of its pixel format.
        """
        picture = size_of(planes, header)
        size = self._sizes[0]
        if len(self._sizes) > 1:
            size = choose(picture, self._sizes, self._image.resize)
        target = loan.tensor(self._image.tensor, self._shapes[size])
        return self.write_into(target[0], planes, header, picture, loan.address)

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
        rows, columns = target.shape[1:] if self._image.layout == "NCHW" else target.shape[:2]
        placed = place(self._image.resize, size, (columns, rows), scale_up=self._scale_up)
        if self._is_planar:
            target = target.reshape(self._channels, rows, columns)
        self._write_border(target, placed, address)
        down = slice(placed.top, placed.top + placed.height)
        across = slice(placed.left, placed.left + placed.width)
        if self._is_planar:
            self._write_planar(planes, header, target[:, down, across])
        else:
            self._write_packed(planes, header, target[down, across])
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


def _shape_of(layout: str, channels: int, size: Size) -> tuple[int, ...]:
    width, height = size
    return (1, channels, height, width) if layout == "NCHW" else (1, height, width, channels)

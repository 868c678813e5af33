"""The small picture in a model's order of colours, made of a frame's planes: scaled first.

Everything after the first step works on the small picture, in buffers that are used again for
every frame. Only a worker that has opened its stage imports this module.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import accumulate, pairwise
from math import prod

import cv2
import numpy as np

from edgert.stages.preprocess.colour import grey_levels, yuv_matrix
from edgert.tensor import PIXEL_FORMATS, FrameHeader
from edgert.transport.address import Array

Planes = Mapping[str, Array]
Shape = tuple[int, ...]
# Fills an array with a plane, or with the part of it that is wanted, in the array's own size.
Resample = Callable[[Array, Array], None]
_VIEWS_AT_MOST = 256
INTERPOLATIONS = {"linear": cv2.INTER_LINEAR, "area": cv2.INTER_AREA}


class Scratch:
    """Buffers that are used again: one for each role, as large as its largest use so far.

    So are the views of them: frames of one look have the same ones.
    """

    def __init__(self) -> None:
        self._buffers: dict[str, Array] = {}
        self._views: dict[tuple[str, tuple[Shape, ...]], tuple[Array, ...]] = {}

    def view(self, role: str, shape: Shape) -> Array:
        """Return a u8 array of this shape; it keeps what the last use left there."""
        return self.views(role, (shape,))[0]

    def views(self, role: str, shapes: tuple[Shape, ...]) -> tuple[Array, ...]:
        """Return u8 arrays of these shapes that lie one behind the other."""
        views = self._views.get((role, shapes))
        return self._make(role, shapes) if views is None else views

    def _make(self, role: str, shapes: tuple[Shape, ...]) -> tuple[Array, ...]:
        ends = list(accumulate(map(prod, shapes), initial=0))
        buffer = self._buffers.get(role)
        is_new = buffer is None or buffer.size < ends[-1]
        if buffer is None or is_new:
            buffer = self._buffers[role] = np.empty(ends[-1], np.uint8)
        if is_new or len(self._views) >= _VIEWS_AT_MOST:
            self._views.clear()  # those of a smaller buffer do not share the new one's memory
        views = tuple(
            buffer[start:end].reshape(shape)
            for (start, end), shape in zip(pairwise(ends), shapes, strict=True)
        )
        self._views[role, shapes] = views
        return views


class Painter:
    """Makes the small picture in the model's order of colours from the planes of a frame."""

    def __init__(self, colour: str, resample: Resample) -> None:
        self._colour = colour
        self._resample = resample
        self._scratch = Scratch()
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
        size = into.shape[:2]
        y, u, v = self._scratch.views("planes", (size, size, size))
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
        half = (even[0] // 2, even[1] // 2)
        y, u, v = self._scratch.views("planes", (even, half, half))
        self._resample(planes["y"], y[:height, :width])
        self._resize_chroma(planes, u, v)
        sheet = self._scratch.view("planes", (even[0] * 3 // 2, even[1]))
        if even == (height, width):
            cv2.cvtColor(sheet, self._i420_code, dst=into)
            return into
        picture = self._scratch.view("even", (*even, 3))
        cv2.cvtColor(sheet, self._i420_code, dst=picture)
        return picture[:height, :width]

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
            cv2.LUT(into, grey_levels(), dst=into)
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

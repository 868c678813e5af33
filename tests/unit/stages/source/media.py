"""Makes the videos of these tests, with contents that tell frames and pixels apart."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import av
import numpy as np

from edgert.models.describe import ModelDescription
from edgert.stages.base import PlanContext
from edgert.stages.harness import StageRun
from edgert.transport.address import Array

Painter = Callable[[int, str, int, int], Array]


class NoModels:
    """A model reader for stages that need no model."""

    def describe(self, model: str, shapes: Mapping[str, Any]) -> ModelDescription:
        raise AssertionError("a source asks for no model")


def plan_context(folder: Path, streams: tuple[str, ...] = ("camera",)) -> PlanContext:
    return PlanContext("camera", "stage 'camera'", str(folder), NoModels(), {}, streams)


def paint(number: int, plane: str, rows: int, columns: int) -> Array:
    """A pattern in which every pixel, plane and frame differs from its neighbours."""
    row, column = np.mgrid[:rows, :columns]
    start = {"y": 16, "u": 80, "v": 150}[plane]
    return (start + (row * 3 + column * 5 + number * 7) % 60).astype(np.uint8)


def yuv_frame(number: int, width: int, height: int, painter: Painter = paint) -> av.VideoFrame:
    frame = av.VideoFrame(width, height, "yuv420p")
    for name, plane in zip(("y", "u", "v"), frame.planes, strict=True):
        rows, columns = plane_shape(name, width, height)
        buffer: Any = plane
        into = np.frombuffer(buffer, np.uint8).reshape(-1, plane.line_size)
        into[:rows, :columns] = painter(number, name, rows, columns)
    return frame


def plane_shape(name: str, width: int, height: int) -> tuple[int, int]:
    return (height, width) if name == "y" else ((height + 1) // 2, (width + 1) // 2)


def make_video(
    path: Path,
    size: tuple[int, int] = (64, 48),
    pts: Sequence[int] = tuple(range(10)),
    codec: str = "ffv1",
    *,
    time_base: Fraction = Fraction(1, 25),
    options: Mapping[str, str] | None = None,
    format_options: Mapping[str, str] | None = None,
    rotation: float | None = None,
    frames: Iterator[av.VideoFrame] | None = None,
) -> Path:
    """Encode one frame for each time stamp."""
    made = frames or (yuv_frame(number, *size) for number in range(len(pts)))
    with av.open(str(path), "w", options=dict(format_options or {})) as container:
        first = next(made)
        stream = container.add_stream(codec, rate=25, options=dict(options or {}))
        stream.width, stream.height = first.width, first.height
        stream.pix_fmt = first.format.name
        stream.codec_context.time_base = time_base
        if rotation is not None:
            stream.set_display_rotation(rotation)
        for number, frame in enumerate([first, *made]):
            frame.pts, frame.time_base = pts[number], time_base
            container.mux(stream.encode(frame))
        container.mux(stream.encode())
    return path


def h264(path: Path, count: int, **more: Any) -> Path:
    """A small H.264 file whose index stands before its frames, with B-frames and key frames."""
    return make_video(
        path,
        pts=range(count),
        codec="libx264",
        options={"g": "25"},
        format_options={"movflags": "faststart"},
        **more,
    )


def all_frames(run: StageRun) -> list[dict[str, Array]]:
    """Every frame's planes, copied, until the end."""
    frames = []
    while (out := run.grab()) is not None:
        frames.append({name: array.copy() for name, array in out["image"].tensors.items()})
    return frames

"""What every result says of its frame, whatever was looked for in it."""

from __future__ import annotations

from typing import Any, Literal

import msgspec
import numpy as np
import numpy.typing as npt


class FrameResult(msgspec.Struct, frozen=True, kw_only=True, tag_field="task"):
    """The head of a result.

    Attributes:
        schema: Name and version of this format.
        stream: Name of the source.
        frame: Number of the frame in its stream, from 0.
        pts_s: Presentation time of the frame from the start of its stream.
        latency_ms: From the moment the source had the frame to the making of this message.
        width: Width of the source frame in pixels.
        height: Height of the source frame in pixels.
        epoch: How often the time of a camera has begun anew; not there before the first time.
    """

    schema: Literal["edgert.result/1"] = "edgert.result/1"
    stream: str
    frame: int
    pts_s: float
    latency_ms: float
    width: int
    height: int
    epoch: int | msgspec.UnsetType = msgspec.UNSET


def rounded(numbers: npt.NDArray[Any], digits: int) -> list[Any]:
    """Return an array as plain numbers, each as ``round`` would give it.

    Those of f32 are exact in f64 times 10 000, so that ties go the same way; a pose has 51 of them.
    """
    plain: list[Any] = numbers.astype(np.float64).round(digits).tolist()
    return plain

"""What a pipeline says of a frame: one message a frame, one JSON line each.

The messages are a union told apart by ``task``. Numbers are rounded where they are made: boxes to a
hundredth of a pixel, scores to four digits, times to the microsecond.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import msgspec


class Detection(msgspec.Struct, frozen=True):
    """One thing that was found.

    Attributes:
        label: Name of the class; its number in words where the model has no labels.
        class_id: Number of the class; ``class`` in JSON.
        score: Confidence, 0 to 1.
        box: x1, y1, x2, y2 in pixels of the source frame.
    """

    label: str
    class_id: int = msgspec.field(name="class")
    score: float
    box: tuple[float, float, float, float]


class DetectionResult(msgspec.Struct, frozen=True, kw_only=True, tag_field="task", tag="detection"):
    """What was found in one frame.

    Attributes:
        stream: Name of the source.
        frame: Number of the frame in its stream, from 0.
        pts_s: Presentation time of the frame from the start of its stream.
        latency_ms: From the moment the source had the frame to the making of this message.
        width: Width of the source frame in pixels.
        height: Height of the source frame in pixels.
        detections: Empty where nothing was found.
        schema: Name and version of this format.
    """

    schema: Literal["edgert.result/1"] = "edgert.result/1"
    stream: str
    frame: int
    pts_s: float
    latency_ms: float
    width: int
    height: int
    detections: list[Detection]


Result = DetectionResult
"""Every kind of result; one kind today."""

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(Result).decode


def detections_from(
    boxes: Sequence[Sequence[float]],
    scores: Sequence[float],
    classes: Sequence[int],
    labels: Sequence[str],
) -> list[Detection]:
    """Return the detections of a frame from plain lists (``array.tolist()``)."""
    known = len(labels)
    return [
        Detection(
            labels[class_id] if 0 <= class_id < known else f"class {class_id}",
            class_id,
            round(score, 4),
            (round(x1, 2), round(y1, 2), round(x2, 2), round(y2, 2)),
        )
        for (x1, y1, x2, y2), score, class_id in zip(boxes, scores, classes, strict=True)
    ]


def encode_line(result: Result) -> bytes:
    """Return a result as one JSON line, its end included."""
    return _encode(result) + b"\n"


def decode(line: bytes | str) -> Result:
    """Return the result that a line holds.

    Raises:
        msgspec.DecodeError: It is not a result of this version's schema.
    """
    return _decode(line)

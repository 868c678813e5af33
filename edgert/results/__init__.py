"""What a pipeline says of a frame: one message a frame, one JSON line each.

The messages are a union told apart by ``task``. Numbers are rounded where they are made: boxes and
points to a hundredth of a pixel, scores to four digits, times to the microsecond.
"""

from __future__ import annotations

from typing import TypeAlias

import msgspec

from edgert.results.classification import ClassificationResult, ClassScore, classes_from
from edgert.results.detection import Detection, DetectionResult, detections_from, label_of
from edgert.results.frame import FrameResult
from edgert.results.pose import Keypoint, Pose, PoseResult, poses_from
from edgert.results.segmentation import MaskFrame, Segment, SegmentationResult, segments_from
from edgert.results.text import TextLine, TextResult, lines_from

__all__ = [
    "ClassScore",
    "ClassificationResult",
    "Detection",
    "DetectionResult",
    "FrameResult",
    "Keypoint",
    "MaskFrame",
    "Pose",
    "PoseResult",
    "Result",
    "Segment",
    "SegmentationResult",
    "TextLine",
    "TextResult",
    "classes_from",
    "decode",
    "detections_from",
    "encode_line",
    "label_of",
    "lines_from",
    "poses_from",
    "segments_from",
]

Result: TypeAlias = (
    DetectionResult | PoseResult | SegmentationResult | ClassificationResult | TextResult
)
"""Every kind of result."""

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(Result).decode


def encode_line(result: FrameResult) -> bytes:
    """Return a result as one JSON line, its end included."""
    return _encode(result) + b"\n"


def decode(line: bytes | str) -> Result:
    """Return the result that a line holds.

    Raises:
        msgspec.DecodeError: It is not a result of this version's schema.
    """
    return _decode(line)

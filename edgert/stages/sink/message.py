"""Makes a result of what arrives at a sink, whatever the pipeline looked for."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

from edgert.errors import UserError
from edgert.results import (
    ClassificationResult,
    DetectionResult,
    MaskFrame,
    PoseResult,
    Result,
    SegmentationResult,
    TextResult,
    classes_from,
    detections_from,
    lines_from,
    poses_from,
    segments_from,
)
from edgert.stages.base import Inputs, Ports, StageContext
from edgert.stages.geometry import map_point
from edgert.tensor import PortSpec
from edgert.transport.slot import Sample

# The inputs of every sink that takes results; a pipeline connects one of them.
RESULT_INPUTS: Mapping[str, str] = {
    "detections?": "detections",
    "poses?": "poses",
    "segmentation?": "segmentation",
    "classification?": "classification",
    "lines?": "lines",
}

Head = dict[str, Any]
Make = Callable[[Sample, PortSpec, Head], Result]


class ResultMaker:
    """Turns samples of a port of results into results."""

    def __init__(self, context: StageContext) -> None:
        self._streams = context.streams
        ((self._input, self._port),) = context.inputs.items()
        self._make = _MAKERS[self._port.kind]

    def make(self, inputs: Inputs) -> Result:
        """Return the result of one frame, its latency measured now."""
        sample = inputs[self._input]
        header = sample.header
        head: Head = {
            "stream": self._streams[header.stream],
            "frame": header.sequence,
            "pts_s": round(header.pts_ns / 1e9, 6),
            "latency_ms": round((time.monotonic_ns() - header.captured_ns) / 1e6, 3),
            "width": header.width,
            "height": header.height,
        }
        if header.epoch:
            head["epoch"] = header.epoch
        return self._make(sample, self._port, head)


def require_one(inputs: Ports, place: str) -> None:
    """Refuse a sink that is connected to no results, or to several kinds of them.

    Raises:
        UserError: It is.
    """
    if len(inputs) == 1:
        return
    known = ", ".join(name.rstrip("?") for name in RESULT_INPUTS)
    fault = f"it writes one kind of results, and {len(inputs)} are connected"
    raise UserError(f"{place}, inputs", fault, f"Connect one of {known}")


def _detections(sample: Sample, port: PortSpec, head: Head) -> DetectionResult:
    tensors = sample.tensors
    found = detections_from(
        tensors["boxes"],
        tensors["scores"],
        tensors["classes"],
        port.attributes.get("labels", []),
        tensors.get("landmarks"),
    )
    return DetectionResult(**head, detections=found)


def _poses(sample: Sample, port: PortSpec, head: Head) -> PoseResult:
    tensors = sample.tensors
    found = poses_from(tensors["keypoints"], tensors["scores"], port.attributes["keypoints"])
    return PoseResult(**head, poses=found)


def _segmentation(sample: Sample, port: PortSpec, head: Head) -> SegmentationResult:
    mask, transform = sample.tensors["mask"], sample.header.transform
    height, width = mask.shape
    corners = (*map_point(transform, 0, 0), *map_point(transform, width, height))
    x1, y1, x2, y2 = (round(value, 2) for value in corners)
    area = abs(transform[0] * transform[4])
    found = segments_from(mask, area, port.attributes.get("labels", []))
    return SegmentationResult(
        **head, classes=found, mask=MaskFrame((height, width), (x1, y1, x2, y2))
    )


def _classification(sample: Sample, port: PortSpec, head: Head) -> ClassificationResult:
    tensors = sample.tensors
    labels = port.attributes.get("labels", [])
    found = classes_from(tensors["scores"], tensors["classes"], labels)
    return ClassificationResult(**head, classes=found)


def _text(sample: Sample, port: PortSpec, head: Head) -> TextResult:
    tensors, said = sample.tensors, sample.metadata
    found = lines_from(said["text"], tensors["scores"], tensors["corners"])
    return TextResult(**head, lines=found, not_read=said["not_read"])


_MAKERS: dict[str, Make] = {
    "detections": _detections,
    "poses": _poses,
    "segmentation": _segmentation,
    "classification": _classification,
    "lines": _text,
}

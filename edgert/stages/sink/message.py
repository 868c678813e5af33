"""Makes a result of a frame's detections, for every sink that writes results."""

from __future__ import annotations

import time

from edgert.results import DetectionResult, detections_from
from edgert.stages.base import StageContext
from edgert.transport.slot import Sample


class ResultMaker:
    """Turns samples of a ``detections`` port into results."""

    def __init__(self, context: StageContext) -> None:
        self._streams = context.streams
        self._labels: list[str] = context.inputs["detections"].attributes.get("labels", [])

    def make(self, sample: Sample) -> DetectionResult:
        """Return the result of one frame, its latency measured now."""
        header, tensors = sample.header, sample.tensors
        return DetectionResult(
            stream=self.stream(header.stream),
            frame=header.sequence,
            pts_s=round(header.pts_ns / 1e9, 6),
            latency_ms=round((time.monotonic_ns() - header.captured_ns) / 1e6, 3),
            width=header.width,
            height=header.height,
            detections=detections_from(
                tensors["boxes"].tolist(),
                tensors["scores"].tolist(),
                tensors["classes"].tolist(),
                self._labels,
            ),
        )

    def stream(self, number: int) -> str:
        """Return the name of a stream."""
        return self._streams[number]

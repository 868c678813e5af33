"""``bench batching``: how much of what a device can do batches over several streams make of it.

The device is emulated: an inference takes a time of its own and some more for each frame, as on an
accelerator whose inferences have a fixed cost. So what it can do is known, and figures of machines
compare. Two runs by ``edgert run``: cameras at their own rate, for the latency; and twice as many
frames as the device can do, which live sources then drop at their gates, for the throughput.

    what the device can do = max_size / (latency_ms + max_size * per_item_ms)
    latency at most        = max_delay_ms + 2 * (latency_ms + max_size * per_item_ms)
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from edgert.backends.trial_model import SHAPE, trial_model
from edgert.bench.whole import Whole, run_whole

_STAGE = "device"
_OVERLOAD = 2.0


class Asked(msgspec.Struct, frozen=True):
    """What is measured.

    Attributes:
        streams: How many cameras.
        fps: Frames a second of each.
        latency_ms: What an inference takes, however many frames it has.
        per_item_ms: What it takes for each frame in it.
        max_size: Largest batch.
        max_delay_ms: How long the first frame of a batch waits; None for the default.
        seconds: How long each run takes.
    """

    streams: int = 8
    fps: float = 30.0
    latency_ms: float = 20.0
    per_item_ms: float = 1.0
    max_size: int = 8
    max_delay_ms: float | None = None
    seconds: float = 5.0

    @property
    def inference_ms(self) -> float:
        """What an inference of a full batch takes."""
        return self.latency_ms + self.max_size * self.per_item_ms

    @property
    def device_fps(self) -> float:
        """What the device can do at most."""
        return self.max_size / self.inference_ms * 1e3

    @property
    def delay_ms(self) -> float:
        """How long the first frame of a batch waits: one interval of the cameras by default."""
        interval_ms = 1e3 / self.fps if self.streams > 1 else 0.0
        return interval_ms if self.max_delay_ms is None else self.max_delay_ms


class Load(msgspec.Struct, frozen=True):
    """What came of one run.

    Attributes:
        offered_fps: Frames a second of all cameras.
        fps: Frames a second that came through.
        share: Of what the device can do, or of what was offered where that is less.
        mean_size: Frames of a batch.
        p50_ms: Latency from camera to result.
        p99_ms: The same.
    """

    offered_fps: float
    fps: float
    share: float
    mean_size: float
    p50_ms: float
    p99_ms: float


class BatchingReport(msgspec.Struct, frozen=True):
    """What ``edgert bench batching`` tells."""

    asked: Asked
    device_fps: float
    bound_ms: float
    cameras: Load
    overload: Load
    schema: str = "edgert.bench.batching/1"


def bench_batching(asked: Asked, note: Callable[[str], None]) -> BatchingReport:
    """Run the cameras at their own rate, then with more than the device can do.

    Raises:
        EdgertError: A run failed.
    """
    overload_fps = max(asked.fps, _OVERLOAD * asked.device_fps / asked.streams)
    with tempfile.TemporaryDirectory(prefix="edgert-bench-") as name:
        folder = Path(name)
        (folder / "model.onnx").write_bytes(trial_model())
        note("cameras at their own rate")
        cameras = _run(asked, asked.fps, folder)
        note("more than the device can do")
        overload = _run(asked, overload_fps, folder)
    return BatchingReport(
        asked,
        round(asked.device_fps, 1),
        round(asked.delay_ms + 2 * asked.inference_ms, 1),
        cameras,
        overload,
    )


def _run(asked: Asked, fps: float, folder: Path) -> Load:
    file = folder / "pipeline.yaml"
    file.write_text(json.dumps(_pipeline(asked, fps, folder)), encoding="utf-8")
    whole = run_whole([str(file)], {}, folder)
    offered_fps = fps * asked.streams
    best = min(offered_fps, asked.device_fps)
    return Load(
        offered_fps=round(offered_fps, 1),
        fps=round(whole.fps, 1),
        share=round(whole.fps / best, 3),
        mean_size=_mean_size(whole),
        p50_ms=whole.latency_ms["p50"] or 0.0,
        p99_ms=whole.latency_ms["p99"] or 0.0,
    )


def _mean_size(whole: Whole) -> float:
    batch = whole.stages[_STAGE].batch
    return float(batch["mean_size"]) if batch else 1.0


def _pipeline(asked: Asked, fps: float, folder: Path) -> dict[str, Any]:
    # Cameras are not in step: each begins a share of an interval later than the one before.
    cameras = {
        f"camera{n}": {
            "kind": "edgert.bench.paced:Camera",
            "fps": fps,
            "seconds": asked.seconds,
            "shape": list(SHAPE),
            "offset": n / asked.streams,
        }
        for n in range(asked.streams)
    }
    batch = {"max_size": asked.max_size, "max_delay_ms": asked.delay_ms}
    device = {
        "kind": "infer",
        "inputs": {"tensor": [f"{name}.tensor" for name in cameras]},
        "model": str(folder / "model.onnx"),
        "device": "emulated:NPU",
        "options": {"latency_ms": asked.latency_ms, "per_item_ms": asked.per_item_ms},
        "batch": batch,
    }
    drain = {"kind": "edgert.bench.paced:Drain", "inputs": {"any": f"{_STAGE}.outputs"}}
    return {
        "version": 1,
        "name": f"bench-batching-{folder.name.rpartition('-')[2].lower().replace('_', '0')}",
        "stages": {**cameras, _STAGE: device, "drain": drain},
        "limits": {"in_flight": 4},
    }

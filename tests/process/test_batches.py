"""Batches over several streams, in real processes on a real runtime."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests import models
from tests.process.runs import assert_adds_up, run, write_pipeline

SHAPE = [1, 3, 8, 8]
FOREVER_MS = 10_000  # a run that ever waits so long is seen


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    models.convolution(tmp_path / "m.onnx", ["n", 3, "h", "w"])
    return tmp_path


def pipeline(
    folder: Path,
    counts: Mapping[str, int],
    in_flight: int = 4,
    odd: tuple[int, ...] = (),
    **settings: Any,
) -> Path:
    sources = {
        name: {"kind": "Tensors", "count": count, "shape": SHAPE, "odd": list(odd)}
        for name, count in counts.items()
    }
    detector = {
        "kind": "infer",
        "inputs": {"tensor": [f"{name}.tensor" for name in counts]},
        "model": str(folder / "m.onnx"),
        "shape": {"x": SHAPE},
        "device": "openvino:CPU",
        "requests": 1,
        **settings,
    }
    stages = {
        **sources,
        "detector": detector,
        "sums": {
            "kind": "Sums",
            "inputs": {"raw": "detector.outputs"},
            "path": str(folder / "sums.txt"),
        },
    }
    return write_pipeline(folder, stages, in_flight)


def by_stream(folder: Path) -> tuple[dict[str, list[str]], list[float]]:
    """Return what the sink wrote: numbers (and the end) of each stream in its order, and sums."""
    found: dict[str, list[str]] = {}
    sums = {}
    for line in (folder / "sums.txt").read_text().splitlines():
        stream, number, *rest = line.split()
        found.setdefault(stream, []).append(number)
        sums[stream, number] = float(rest[0]) if rest else 0.0
    return found, [sums[key] for key in sorted(sums)]


def test_batches_form_over_streams_and_results_are_those_of_single_frames(folder: Path) -> None:
    """E4: one stream ends early; the other goes on, and nothing ever waits for the delay."""
    counts = {"short": 30, "long": 100}
    code, _, err, _ = run(pipeline(folder, counts))
    assert code == 0, err
    order, alone = by_stream(folder)
    batch = {"max_size": 4, "max_delay_ms": FOREVER_MS}
    code, _, err, summary = run(pipeline(folder, counts, batch=batch))
    assert code == 0, err
    assert by_stream(folder) == (order, pytest.approx(alone, abs=0.01))
    assert sorted(map(len, order.values())) == [31, 101]
    assert_adds_up(summary)
    found = summary["stages"]["detector"]["batch"]
    assert found["mean_size"] > 3
    assert summary["latency_ms"]["max"] < FOREVER_MS
    assert set(summary["stages"]["detector"]["variants"]) == {"batch of 2", "batch of 4"}
    assert sum(found["wait_ms"][share] is not None for share in ("p50", "p99")) == 2


def test_fewer_frames_in_flight_than_a_batch_holds(folder: Path) -> None:
    """When every credit is here nothing else can come: the batch begins as it is."""
    batch = {"max_size": 8, "max_delay_ms": FOREVER_MS}
    code, _, err, summary = run(pipeline(folder, {"a": 12, "b": 12}, in_flight=2, batch=batch))
    assert code == 0, err
    assert "a batch of 8 can never be full: with limits.in_flight 2, 4 frames" in err
    assert summary["frames"]["processed"] == 24
    assert summary["stages"]["detector"]["batch"]["mean_size"] > 1
    assert summary["latency_ms"]["max"] < FOREVER_MS


def test_replicas_do_not_wait_for_frames_that_cannot_come(folder: Path) -> None:
    """Each holds a share of the frames in flight: that no other can come, they know together."""
    batch = {"max_size": 4, "max_delay_ms": FOREVER_MS}
    settings = {"device": "emulated:NPU", "options": {"latency_ms": 5}, "replicas": 2}
    code, _, err, summary = run(pipeline(folder, {"a": 41, "b": 30}, batch=batch, **settings))
    assert code == 0, err
    assert_adds_up(summary)
    assert summary["frames"]["processed"] == 71
    assert summary["latency_ms"]["max"] < FOREVER_MS
    assert summary["stages"]["detector.1"]["batch"]["mean_size"] > 1


def test_a_frame_of_another_shape_is_lost_alone(folder: Path) -> None:
    batch = {"max_size": 4, "max_delay_ms": FOREVER_MS}
    code, _, err, summary = run(pipeline(folder, {"a": 20}, in_flight=8, odd=(3,), batch=batch))
    assert code == 0, err
    assert "frame 3 is lost: 'x' has shape [1, 3, 8, 7] in this frame" in err
    assert summary["frames"] == {"read": 20, "processed": 19, "dropped": 0, "lost": 1}
    assert_adds_up(summary)


def test_batches_on_an_emulated_device_fill_while_it_is_busy(folder: Path) -> None:
    settings = {"device": "emulated:NPU", "options": {"latency_ms": 20}}
    counts = dict.fromkeys("abcd", 20)
    code, _, err, summary = run(pipeline(folder, counts, batch={"max_size": 8}, **settings))
    assert code == 0, err
    assert summary["frames"]["processed"] == 80
    assert summary["stages"]["detector"]["batch"]["mean_size"] > 2
    assert summary["devices"]["detector"]["emulated"]


def test_frames_of_several_shapes(folder: Path) -> None:
    """Each is inferred in its own shape; one that was not named is lost with the reason."""
    settings = {"shape": {"x": [1, 3, 8, [8, 7]]}, "requests": 2}
    code, _, err, summary = run(pipeline(folder, {"a": 20}, odd=(3, 5, 11), **settings))
    assert code == 0, err
    assert summary["frames"]["processed"] == 20
    assert list(summary["stages"]["detector"]["variants"]) == ["shape x [1, 3, 8, 7]"]
    settings = {"shape": {"x": [1, 3, 8, [8, 6]]}, "requests": 1}
    code, _, err, summary = run(pipeline(folder, {"a": 20}, odd=(3, 5), **settings))
    assert code == 0, err
    assert summary["frames"] == {"read": 20, "processed": 18, "dropped": 0, "lost": 2}
    assert "and the model is prepared for [1, 3, 8, 8]; [1, 3, 8, 6]" in err

"""The summary as people see it."""

from __future__ import annotations

from typing import Any

import msgspec

from edgert.cli.summary import render_summary
from edgert.runtime.summary import Summary

NOTHING = {"p50": None, "p95": None, "p99": None}
DEVICE = {
    "actual": "openvino:CPU",
    "precision": "f32",
    "runtime": "openvino 2026.4.1",
    "refused": {"openvino:NPU": "there is no device 'NPU' here (OpenVINO has: CPU)"},
}


def summary_of(frames: int, times: dict[str, float | None]) -> Summary:
    stage: dict[str, Any] = {
        "frames": frames,
        "lost": 0,
        "cpu_s": 4.451,
        "copied_bytes": 0,
        "cores": [0, 1],
        "pid": 1,
        "worker": "detector",
        "restarts": 0,
        "open_s": 0.5,
        "service_ms": times,
        "wait_in_ms": times,
        "wait_out_ms": times,
    }
    counts = {"read": frames, "processed": frames, "dropped": 0, "lost": 0}
    data = {
        "pipeline": "detect",
        "duration_s": 2.66,
        "fps": frames * 0.38,
        "frames": counts,
        "streams": {"camera": counts},
        "links": {},
        "sources": {},
        "latency_ms": times,
        "stages": {"camera": stage, "detector": stage},
        "devices": {"detector": DEVICE},
        "memory": {"pss_mb": 298.2},
        "bottleneck": {"stage": "detector", "why": "it is slow"},
    }
    return msgspec.convert(data, Summary)


def test_of_several_streams_it_names_those_that_dropped() -> None:
    whole = summary_of(10, NOTHING)
    streams = {
        "fast": {"read": 800, "processed": 82, "dropped": 716, "lost": 2},
        "slow": {"read": 40, "processed": 40, "dropped": 0, "lost": 0},
    }
    text = render_summary(msgspec.structs.replace(whole, streams=streams))
    assert "stream fast: dropped 716, lost 2 of 800" in text.splitlines()
    assert "stream slow" not in text


def test_it_fits_into_80_columns_and_every_refusal_has_a_line() -> None:
    times = {"p50": 20.178, "p95": 25.1, "p99": 129.62, "max": 200.0}
    text = render_summary(summary_of(250, times))
    assert max(map(len, text.splitlines())) <= 80
    assert text.splitlines()[1:] == [
        "detect: read 250 = processed 250 + dropped 0 + lost 0; 95.0 frames/s in 2.7 s",
        "latency: p50 20.18, p95 25.10, p99 129.62, max 200.00 ms",
        "stage     frames  p50 ms  p99 ms  wait in  wait out  copied B  worker    cpu s",
        "camera       250   20.18  129.62    20.18     20.18         0  detector   4.45",
        "detector     250   20.18  129.62    20.18     20.18         0  detector   4.45",
        "device of detector: openvino:CPU, f32 (openvino 2026.4.1)",
        "  openvino:NPU refused: there is no device 'NPU' here (OpenVINO has: CPU)",
        "memory: 298 MB in all (PSS)",
        "bottleneck: detector: it is slow",
    ]


def test_where_no_frame_came_there_are_no_times() -> None:
    lines = render_summary(summary_of(0, NOTHING)).splitlines()
    assert lines[1] == "detect: read 0 = processed 0 + dropped 0 + lost 0; 2.7 s"
    assert lines[2] == "latency: no frame came to its end"
    assert lines[4].split() == ["camera", "0", "-", "-", "-", "-", "0", "detector", "4.45"]

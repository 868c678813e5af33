"""Pipelines measured by real processes: each stage alone, then the whole."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import helper

from edgert.bench.pipeline import PipelineBench, bench_pipeline, sink_paths
from edgert.errors import RunError, StageError
from tests.conftest import REPOSITORY, Edgert
from tests.models import save, value
from tests.process.runs import descendants, is_gone, load, wait_for, write_pipeline
from tests.unit.bench.graphs import Stages, chain, two_streams_joined
from tests.unit.stages.source.media import make_video

pytestmark = pytest.mark.process
CELLS = 21  # of a 32x32 input with strides 8, 16 and 32
COLUMNS = 85


def bench_of(folder: Path, stages: Stages) -> PipelineBench:
    plan = load(folder, stages).plan
    return PipelineBench(plan, folder / "pipeline.yaml", seconds=0.02)


def test_streams_joins_and_stages_with_frames_in_flight(tmp_path: Path) -> None:
    report = bench_pipeline(bench_of(tmp_path, two_streams_joined(tmp_path)))
    assert set(report.cpu_ms_per_frame) == {"left", "right", "slow", "sum"}
    assert all(cost > 0 for cost in report.cpu_ms_per_frame.values())
    assert report.frames_per_result == {"left": 0.5, "right": 0.5, "slow": 1.0, "sum": 1.0}
    assert report.frames["processed"] == 600
    assert report.fps > 0
    assert report.ideal_fps > 0
    assert report.copied_bytes == 0


def test_copies_are_counted_and_the_sinks_own_files_left_alone(tmp_path: Path) -> None:
    (tmp_path / "out.txt").write_text("what was there before")
    report = bench_pipeline(bench_of(tmp_path, chain(tmp_path, copies=True)))
    assert report.copied_bytes == 300 * 8
    assert (tmp_path / "out.txt").read_text() == "what was there before"


def test_sinks_keep_the_suffix_of_their_files(tmp_path: Path) -> None:
    plan = load(tmp_path, chain(tmp_path)).plan
    assert sink_paths(plan, tmp_path) == {"out": tmp_path / "out.txt"}


def test_a_stage_that_raises_is_named(tmp_path: Path) -> None:
    fault = r"stage 'one': raised ValueError: cannot count to 25\."
    with pytest.raises(StageError, match=fault):
        bench_pipeline(bench_of(tmp_path, chain(tmp_path, raise_at=25)))


def test_a_stage_that_dies_is_named(tmp_path: Path) -> None:
    stages = chain(tmp_path)
    stages["out"]["die_at"] = 100
    with pytest.raises(RunError, match=r"stage 'out': ended by signal 9"):
        bench_pipeline(bench_of(tmp_path, stages))


def test_a_run_that_fails_tells_why(tmp_path: Path) -> None:
    stages = chain(tmp_path, raise_at=200)
    with pytest.raises(RunError, match=r"edgert run: stage 'one': .*: cannot count to 200"):
        bench_pipeline(bench_of(tmp_path, stages))


def detector(folder: Path) -> Path:
    """A model that takes what YOLOX takes and finds nothing in particular."""
    nodes = [
        helper.make_node("Reshape", ["images", "flat"], ["all"]),
        helper.make_node("Slice", ["all", "from", "to"], ["some"]),
        helper.make_node("Reshape", ["some", "cells"], ["output"]),
    ]
    weights = {
        "flat": np.array([-1]),
        "from": np.array([0]),
        "to": np.array([CELLS * COLUMNS]),
        "cells": np.array([1, CELLS, COLUMNS]),
    }
    path = folder / "tiny.onnx"
    inputs, outputs = [value("images", [1, 3, 32, 32])], [value("output", [1, CELLS, COLUMNS])]
    save(path, nodes, inputs, outputs, weights)
    onnx.checker.check_model(str(path))
    return path


def detecting(folder: Path) -> Path:
    """A whole pipeline of our own kinds on a small film and a small model."""
    film = make_video(folder / "film.mkv", (64, 48), pts=tuple(range(60)))
    stages: Stages = {
        "camera": {"kind": "source.video", "uri": str(film)},
        "prepare": {
            "kind": "preprocess.image",
            "inputs": {"image": "camera.image"},
            "for": "detector",
            "resize": "letterbox-top-left",
            "colour": "BGR",
            "scale": 1,
        },
        "detector": {
            "kind": "edgert.stages.infer:Infer",
            "inputs": {"tensor": "prepare.tensor"},
            "model": str(detector(folder)),
            "device": ["emulated:NPU"],
            "options": {"latency_ms": 0.5},
        },
        "things": {
            "kind": "postprocess.detection",
            "inputs": {"raw": "detector.outputs"},
            "family": "yolox",
            "labels": [f"thing {n}" for n in range(COLUMNS - 5)],
        },
        "results": {"kind": "sink.jsonl", "inputs": {"detections": "things.detections"}},
    }
    return write_pipeline(folder, stages)


def test_the_command_prints_the_schema(tmp_path: Path, edgert: Edgert) -> None:
    file = detecting(tmp_path)
    done = edgert(
        "bench", "pipeline", file, "--json", "--frames", "50", "--seconds", "0.05", timeout=120
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["schema"] == "edgert.bench.pipeline/1"
    stages = ["camera", "prepare", "detector", "things", "results"]
    assert list(found["cpu_ms_per_frame"]) == stages
    assert found["fps"] > 0
    assert found["efficiency"] == pytest.approx(found["fps"] / found["ideal_fps"], rel=0.01)
    assert found["frames"] == {"read": 50, "processed": 50, "dropped": 0, "lost": 0}
    assert found["copied_bytes"] == 0
    pace = found["fps"] / found["ideal_fps_at_pace"]
    assert found["efficiency_at_pace"] == pytest.approx(pace, rel=0.01)
    assert found["bottleneck"] in stages
    for column in ("loop", "paced", "whole"):
        assert list(found[f"{column}_cpu_ms_per_frame"]) == stages
    told = [line for line in done.stderr.splitlines() if line.startswith("bench: ")]
    assert told == [
        "bench: recording frames",
        *(f"bench: stage '{stage}' alone" for stage in stages),
        "bench: the whole",
        *(f"bench: stage '{stage}' alone" for stage in stages),
        *(f"bench: worker '{stage}' alone at its pace" for stage in stages),
    ]


def test_what_the_user_can_mend_is_exit_code_2(tmp_path: Path, edgert: Edgert) -> None:
    done = edgert("bench", "pipeline", tmp_path / "missing.yaml")
    assert done.returncode == 2
    assert "missing.yaml" in done.stderr
    assert "Traceback" not in done.stderr


def test_ended_by_sigterm_it_leaves_nothing(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    runtime = tmp_path_factory.mktemp("r")
    file = write_pipeline(tmp_path, chain(tmp_path, count=10**9))
    command = [sys.executable, "-m", "edgert", "bench", "pipeline", str(file), "--seconds", "0.02"]
    with subprocess.Popen(
        command,
        cwd=REPOSITORY,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        # Its temporary folders are looked for; its sockets need a path of less than 107 bytes.
        env={**os.environ, "TMPDIR": str(tmp_path), "XDG_RUNTIME_DIR": str(runtime)},
    ) as process:
        assert process.stderr is not None
        while process.stderr.readline() != "bench: the whole\n":
            assert process.poll() is None
        wait_for(lambda: any("ert:" in name for name in descendants(process.pid).values()), "a run")
        started = descendants(process.pid)
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 143
    wait_for(lambda: all(map(is_gone, started)), "the end of every process")
    assert not list(tmp_path.glob("edgert-bench-*"))

"""tools/soak and tools/recovery, for some seconds: what is done to a run, and the verdict on it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cameras import require_gstreamer
from tests.process.runs import REPOSITORY

pytestmark = [pytest.mark.process, pytest.mark.slow]


def test_a_short_soak(tmp_path: Path) -> None:
    require_gstreamer()
    report = tmp_path / "report.json"
    command = [
        sys.executable,
        str(REPOSITORY / "tools" / "soak"),
        "--json",
        "--report",
        str(report),
    ]
    # No bound for silences: how long one lasts is the machine's affair.
    times = ["--minutes", "0.3", "--every", "1", "--sample", "1", "--seed", "7", "--silence", "99"]
    done = subprocess.run(
        [*command, *times, "--folder", str(tmp_path / "kept")],
        capture_output=True,
        text=True,
        timeout=150,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    found = json.loads(report.read_text())
    said = json.loads(done.stdout)
    assert said["faults"] == found["faults"] == []
    assert sum(said["harms"].values()) == len(found["timeline"]) > 2
    assert {row[1] for row in found["samples"]} == {"live", "file"}
    for name, streams in (("live", {"front", "back"}), ("file", {"file"})):
        pipeline = found["pipelines"][name]
        assert pipeline["streams"].keys() == streams
        assert not pipeline["uncounted"]
        assert all(result["seen"] for result in pipeline["results"].values())
        assert {"supervisor", "zygote", "detector"} <= pipeline["fds"].keys()
        assert "read" in (tmp_path / "kept" / f"{name}.log").read_text()


def test_results_come_again_after_each_kill(tmp_path: Path, yolox_onnx: Path, vtest: Path) -> None:
    pipeline = tmp_path / "detect.yaml"
    shipped = (REPOSITORY / "pipelines" / "detect-yolox.yaml").read_text()
    pipeline.write_text(shipped.replace("model: yolox-nano", f"model: {yolox_onnx}"))
    done = subprocess.run(
        [
            *(sys.executable, str(REPOSITORY / "tools" / "recovery"), str(pipeline)),
            *("--input", str(vtest), "--rounds", "1", "--json"),
        ],
        capture_output=True,
        text=True,
        timeout=150,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    kills = {kill["worker"]: kill for kill in json.loads(done.stdout)["kills"][str(pipeline)]}
    assert kills.keys() == {"camera", "prepare", "detector", "results"}
    for kill in kills.values():
        assert kill["silence_s"] > 0
        assert 0 < kill["started_s"] <= kill["opened_s"]  # to open may take less than a millisecond
    assert kills["detector"]["open_s"] > 0

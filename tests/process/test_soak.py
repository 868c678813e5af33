"""tools/soak, for some seconds: cameras and a file under harm, and the verdict on them."""

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
    times = ["--minutes", "0.3", "--every", "1", "--sample", "1", "--seed", "7"]
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

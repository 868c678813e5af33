"""The rival and edgert side by side: both find the same, and the ratio is printed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import REPOSITORY

pytestmark = pytest.mark.process


def test_both_sides_find_the_same(vtest: Path, yolox_onnx: Path) -> None:
    pytest.importorskip("openvino")
    command = [sys.executable, "tools/versus", "--mode", "emulated", "--pairs", "1"]
    command += ["--frames", "20", "--video", str(vtest), "--model", str(yolox_onnx)]
    done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    _, row, median = done.stdout.splitlines()
    _, rival_fps, edgert_fps, ratio, rival_found, edgert_found = row.split()
    assert float(rival_fps) > 0
    assert float(edgert_fps) > 0
    assert float(rival_found) == float(edgert_found) > 1
    assert median == f"median ratio of 1 pairs: {ratio}"

"""The time of day jumps: a run goes by the monotonic clock alone."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.process.runs import assert_adds_up, started, write_pipeline

pytestmark = pytest.mark.process


@pytest.fixture(scope="module")
def jumping_clock(tmp_path_factory: pytest.TempPathFactory) -> str:
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("there is no C compiler")
    library = tmp_path_factory.mktemp("clock") / "libclock.so"
    source = Path(__file__).parent / "jumping_clock.c"
    made = [compiler, "-shared", "-fPIC", "-o", str(library), str(source), "-ldl"]
    subprocess.run(made, check=True)
    return str(library)


def test_the_clock_of_this_test_does_jump(jumping_clock: str) -> None:
    code = "import time; a = [time.time() for _ in range(6)]; print(max(a) - min(a) > 1e6)"
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "LD_PRELOAD": jumping_clock},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "True\n"


def test_a_run_survives_jumps_of_the_time_of_day(tmp_path: Path, jumping_clock: str) -> None:
    """Back-off, hang watch, latency, flow and the limit of duration: none goes by it."""
    stages = {
        "src": {"kind": "Live", "count": 60, "fps": 100.0},
        "one": {"kind": "Step", "inputs": {"n": "src.n"}, "die_at": 20},
        "out": {"kind": "Write", "inputs": {"n": "one.n"}, "path": str(tmp_path / "out.txt")},
    }
    file = write_pipeline(tmp_path, stages, restart={"hang_s": 20})
    environment = {**os.environ, "LD_PRELOAD": jumping_clock}
    with started(file, "--duration", "50", env=environment) as running:
        code, _, err = running.wait_end()
    summary = running.summary()
    assert code == 0, err
    assert_adds_up(summary)
    assert summary["frames"]["read"] == 60
    assert summary["stages"]["one"]["restarts"] in (1, 2)  # the frame may be tried twice
    assert "hangs" not in err
    assert 0 < summary["duration_s"] < 50
    assert 0 <= summary["latency_ms"]["p50"] <= summary["latency_ms"]["max"] < 50_000

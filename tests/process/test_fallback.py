"""Devices that refuse, hang, die or fail: the next one does it, and every reason is told (V2)."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from edgert.backends.registry import is_installed
from tests.process.runs import REPOSITORY, assert_adds_up, run, write_pipeline
from tests.process.tensors import inferring

pytestmark = [
    pytest.mark.process,
    pytest.mark.skipif(not is_installed("openvino"), reason="openvino is not installed"),
]

COUNT = 40


def with_faults(folder: Path, faults: dict[str, Any], restart: Any = None, **keys: Any) -> Path:
    """Write a pipeline whose first device has faults, and whose second computes."""
    options = {
        "emulated": {"outputs": "computed", "latency_ms": 1},
        "emulated:NPU": {"faults": faults, "state": str(folder / "state")},
    }
    stages = inferring(folder, COUNT, options=options, requests=2, **keys)
    return write_pipeline(folder, stages, restart={"delay_ms": 1, **(restart or {})})


BOTH = ["emulated:NPU", "emulated:GPU"]


@pytest.mark.parametrize(
    ("faults", "keys", "words"),
    [
        ({"die_open": True}, {}, "was ended by SIGSEGV (a native library crashed)"),
        (
            {"hang_open": True},
            {"open_timeout_s": 3},  # within which the other device opens on a busy machine
            "was killed because it hung (emulated:NPU did not open within 3 s)",
        ),
    ],
)
def test_a_device_that_does_not_open(
    tmp_path: Path, faults: dict[str, Any], keys: dict[str, Any], words: str
) -> None:
    code, _, err, summary = run(with_faults(tmp_path, faults, device=BOTH, **keys))
    assert code == 0, err
    device = summary["devices"]["detector"]
    assert device["actual"] == "emulated:GPU"
    assert words in device["refused"]["emulated:NPU"]
    assert f"stage 'detector': emulated:NPU refused: {words}" in err
    assert summary["frames"] == {"read": COUNT, "processed": COUNT, "dropped": 0, "lost": 0}


def test_a_misspelt_option_of_the_first_device_ends_the_run_before_it_begins(
    tmp_path: Path,
) -> None:
    devices, options = ["openvino:CPU", "emulated:GPU"], {"openvino:CPU": {"NUM_STREAM": 1}}
    stages = inferring(tmp_path, COUNT, device=devices, options=options)
    file = write_pipeline(tmp_path, stages)
    code, out, err, summary = run(file)
    assert (code, out, summary) == (2, "", {})
    (line,) = err.splitlines()
    assert line.startswith(f"{file}:")
    assert line.endswith(
        ": stage 'detector', device 'openvino:CPU', options: there is no option 'NUM_STREAM'. "
        "Did you mean 'NUM_STREAMS'?"
    )


def test_where_no_other_device_may_do_it_a_crash_is_a_refusal(tmp_path: Path) -> None:
    file = with_faults(tmp_path, {"die_open": True}, device=BOTH, fallback="forbid")
    code, _, err, _ = run(file)
    assert code == 2
    assert "no device took model" in err.splitlines()[-1]
    assert "emulated:NPU: was ended by SIGSEGV" in err.splitlines()[-1]
    assert err.splitlines()[-1].endswith("Write 'fallback: allow' to let the next device do it.")


@pytest.mark.parametrize(
    ("faults", "words"),
    [
        ({"error_after": 12}, "an inference failed: it was asked for (error_after: 12)"),
        ({"hang_after": 12}, "has been at one frame for"),
        ({"nan_after": 12}, "is NaN or infinite throughout"),
    ],
)
def test_a_device_that_is_lost_while_it_runs(
    tmp_path: Path, faults: dict[str, Any], words: str
) -> None:
    """The frames it had are tried on the next; none is lost, none is given out wrong."""
    file = with_faults(tmp_path, faults, {"hang_s": 1}, device=BOTH)
    code, _, err, summary = run(file)
    assert code == 0, err
    device = summary["devices"]["detector"]
    assert device["actual"] == "emulated:GPU"
    assert words in device["refused"]["emulated:NPU"]
    assert words in err
    assert "Traceback" not in err
    assert_adds_up(summary)
    assert summary["stages"]["detector"]["restarts"] == 1
    assert summary["frames"] == {"read": COUNT, "processed": COUNT, "dropped": 0, "lost": 0}
    lines = (tmp_path / "out.txt").read_text().splitlines()
    assert lines == [f"{n} {2 * n}" for n in range(COUNT)]


def test_with_one_device_the_same_is_tried_again(tmp_path: Path) -> None:
    file = with_faults(tmp_path, {"error_after": 12, "once": True}, device="emulated:NPU")
    code, _, err, summary = run(file)
    assert code == 0, err
    assert summary["frames"]["processed"] == COUNT
    device = summary["devices"]["detector"]
    assert device["actual"] == "emulated:NPU"
    assert device["refused"] == {}
    assert device["failed"].startswith("an inference failed: it was asked for (error_after: 12)")
    assert "runs on emulated:NPU again, which had failed: an inference failed" in err
    assert "emulated:NPU refused" not in err


def test_where_every_device_fails_the_run_ends(tmp_path: Path) -> None:
    file = with_faults(tmp_path, {"error_after": 12}, {"max_restarts": 2}, device="emulated:NPU")
    code, _, err, summary = run(file)
    assert code == 1
    assert "it was started again 2 times, allowed are 2 within 60 s" in err.splitlines()[-1]
    assert_adds_up(summary)


def test_plan_probes_every_device(tmp_path: Path) -> None:
    """Each in a child under the limit: what crashes there is a reason, not the end."""
    file = with_faults(tmp_path, {"die_open": True}, device=BOTH)
    command = [sys.executable, "-m", "edgert", "plan", str(file), "--probe"]
    done = subprocess.run(
        command, cwd=REPOSITORY, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    rows = done.stdout.partition("probed:\n")[2].splitlines()[1:]
    assert rows[0].startswith("detector  emulated:NPU  refused: ")
    assert "SIGSEGV" in rows[0]
    assert "emulated:GPU (emulated)" in rows[1]
    as_json = subprocess.run(
        [*command, "--format", "json"],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    first, second = json.loads(as_json.stdout)["probe"]["detector"]
    assert first["refused"]
    assert not first["actual"]
    assert second["actual"] == "emulated:GPU"
    assert second["emulated"]

"""Faults of the emulated accelerator that were asked for, in the workers of real runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from edgert.backends.registry import is_installed
from tests.process.runs import NEVER, assert_adds_up, run, started, wait_for, write_pipeline
from tests.process.tensors import inferring

pytestmark = [
    pytest.mark.process,
    pytest.mark.skipif(not is_installed("openvino"), reason="openvino is not installed"),
]


def emulated(folder: Path, count: int = 40, **options: Any) -> Path:
    faults = options.pop("faults", {})
    options = {"latency_ms": 1, "faults": faults, **options}
    stages = inferring(folder, count, device=["emulated:NPU"], options=options, requests=2)
    return write_pipeline(folder, stages, restart=NEVER)


def test_the_summary_names_it(tmp_path: Path) -> None:
    code, _, err, summary = run(emulated(tmp_path))
    assert code == 0, err
    device = summary["devices"]["detector"]
    assert device["actual"] == "emulated:NPU"
    assert device["emulated"]
    lines = (tmp_path / "out.txt").read_text().splitlines()
    assert len({line.split()[1] for line in lines}) == 1
    assert len(lines) == 40


def test_it_dies_in_the_first_process_only(tmp_path: Path) -> None:
    state = tmp_path / "state"
    file = emulated(tmp_path, faults={"die_after": 12, "once": True}, state=str(state))
    code, _, err, summary = run(file)
    assert code == 1
    assert "was ended by SIGSEGV (a native library crashed) while it ran stage detector" in err
    assert_adds_up(summary)
    assert summary["frames"]["lost"] >= 1
    assert [each.name for each in state.glob("*.struck")] == ["emulated-NPU.struck"]
    assert run(file)[0] == 0


def test_it_fails(tmp_path: Path) -> None:
    code, _, err, summary = run(emulated(tmp_path, faults={"error_after": 12}))
    assert code == 1
    assert "emulated:NPU: an inference failed: it was asked for (error_after: 12)" in err
    assert_adds_up(summary)


def test_it_is_gone_for_the_next_process_too(tmp_path: Path) -> None:
    state = tmp_path / "state"
    file = emulated(tmp_path, faults={"gone_after": 12}, state=str(state))
    code, _, err, _ = run(file)
    assert code == 1
    assert "emulated:NPU: an inference failed: the device is gone" in err
    code, _, err, _ = run(file)
    assert code == 2
    gone = state / "emulated-NPU.gone"
    assert f"there is no such device: it is gone (Remove {gone} to bring it back)" in err


def test_it_hangs(tmp_path: Path) -> None:
    file = tmp_path / "out.txt"
    with started(emulated(tmp_path, faults={"hang_after": 12})) as running:
        # Two of the twelve were warm-ups.
        wait_for(lambda: file.exists() and file.read_text().count("\n") == 10, "ten results")
        assert running.process.poll() is None


def test_another_device_does_it_where_one_refuses(tmp_path: Path) -> None:
    options = {
        "emulated": {"outputs": "computed", "latency_ms": {"min": 0.1, "max": 1}, "lanes": 2},
        "emulated:NPU": {"faults": {"refuse": "the firmware is too old"}},
    }
    stages = inferring(
        tmp_path, device=["emulated:NPU", "emulated:GPU", "openvino:CPU"], options=options
    )
    code, _, err, summary = run(write_pipeline(tmp_path, stages))
    assert code == 0, err
    device = summary["devices"]["detector"]
    assert device["actual"] == "emulated:GPU"
    assert device["refused"] == {"emulated:NPU": "it refuses the model: the firmware is too old"}
    lines = (tmp_path / "out.txt").read_text().splitlines()
    assert lines == [f"{n} {2 * n}" for n in range(40)]


def test_it_dies_while_it_is_opened(tmp_path: Path) -> None:
    code, _, err, _ = run(emulated(tmp_path, faults={"die_open": True}))
    assert code != 0
    assert "SIGSEGV" in err

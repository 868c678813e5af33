"""Signals and kills: a run drains or dies whole, and nothing is left anywhere (O4 O5 O6 T5)."""

from __future__ import annotations

import os
import signal
import socket
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from edgert.runtime.folder import runtime_dir
from edgert.runtime.run import RunOptions
from tests.process.runs import (
    assert_adds_up,
    descendants,
    folders_of,
    is_gone,
    load,
    open_fds,
    run,
    started,
    unique_name,
    wait_for,
    write_pipeline,
)

pytestmark = pytest.mark.process
ENDLESS = 10**9


def counting(folder: Path, **source: Any) -> dict[str, dict[str, Any]]:
    return {
        "src": {"kind": "Numbers", "count": ENDLESS, **source},
        "one": {"kind": "Step", "inputs": {"n": "src.n"}},
        "two": {"kind": "AsyncStep", "inputs": {"n": "one.n"}},
        "out": {"kind": "Write", "inputs": {"n": "two.n"}, "path": str(folder / "out.txt")},
    }


def hanging(folder: Path) -> dict[str, dict[str, Any]]:
    """A pipeline that cannot drain: one leaf never ends its first frame."""
    return {
        "src": {"kind": "Numbers", "count": ENDLESS},
        "slow": {
            "kind": "Write",
            "inputs": {"n": "src.n"},
            "path": str(folder / "slow.txt"),
            "wait_ms": 600_000,
        },
        "out": {"kind": "Write", "inputs": {"n": "src.n"}, "path": str(folder / "out.txt")},
    }


def written(folder: Path) -> int:
    file = folder / "out.txt"
    return file.stat().st_size if file.exists() else 0


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize("whole_group", [False, True], ids=["supervisor", "group"])
def test_a_stop_signal_drains(tmp_path: Path, number: signal.Signals, whole_group: bool) -> None:
    with started(write_pipeline(tmp_path, counting(tmp_path))) as running:
        pids = running.wait_workers("src", "one", "two", "out", "zygote")
        wait_for(lambda: written(tmp_path), "a first frame")
        (os.killpg if whole_group else os.kill)(running.pid, number)
        code, _, err = running.wait_end()
    assert code == 0, err
    assert "Traceback" not in err
    summary = running.summary()
    assert_adds_up(summary)
    frames = summary["frames"]
    assert frames["read"] == frames["processed"] > 0
    lines = (tmp_path / "out.txt").read_text().splitlines()
    assert lines == [f"0 {n} {n + 2}" for n in range(frames["read"])] + ["0 end"]
    assert all(map(is_gone, pids.values()))


def test_a_stop_signal_to_the_group_while_it_starts(tmp_path: Path) -> None:
    with started(write_pipeline(tmp_path, counting(tmp_path))) as running:
        wait_for(lambda: descendants(running.pid), "the zygote")
        os.killpg(running.pid, signal.SIGINT)
        code, _, err = running.wait_end()
    assert code == 0, err
    assert "Traceback" not in err
    assert f": read {running.summary()['frames']['read']} = processed" in err


def test_a_signal_that_comes_twice_at_once_drains(tmp_path: Path) -> None:
    """As `timeout` sends it: to the process, and to its group."""
    with started(write_pipeline(tmp_path, counting(tmp_path))) as running:
        wait_for(lambda: written(tmp_path), "a first frame")
        os.kill(running.pid, signal.SIGTERM)
        os.kill(running.pid, signal.SIGINT)  # two of a kind might be merged by the kernel
        code, _, err = running.wait_end()
    assert code == 0, err
    assert running.summary()["frames"]["lost"] == 0


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_a_stop_signal_before_it_runs(tmp_path: Path, number: signal.Signals, code: int) -> None:
    stages = counting(tmp_path)
    stages["src"] |= {"kind": "Interrupted", "signal": number}
    file = write_pipeline(tmp_path, stages)
    ended, _, err, summary = run(file)
    assert (ended, summary) == (code, {})
    assert "Traceback" not in err


def test_a_second_signal_kills(tmp_path: Path) -> None:
    with started(write_pipeline(tmp_path, hanging(tmp_path))) as running:
        wait_for(lambda: written(tmp_path), "a first frame")
        pids = running.wait_workers("src", "slow", "out")

        def are_gone_when_told_again() -> bool:
            if all(map(is_gone, pids.values())):
                return True
            os.kill(running.pid, signal.SIGTERM)
            return False

        wait_for(are_gone_when_told_again, "the workers' end", every_s=0.1)
        code, _, err = running.wait_end()
    assert code == 1
    assert "was told a second time to stop; killed: " in err
    assert_adds_up(running.summary())
    assert all(map(is_gone, pids.values()))


def test_draining_that_takes_too_long_is_cut_short(tmp_path: Path) -> None:
    stages = hanging(tmp_path)
    with started(write_pipeline(tmp_path, stages), "--stop-timeout", "0.3") as running:
        wait_for(lambda: written(tmp_path), "a first frame")
        os.kill(running.pid, signal.SIGTERM)
        code, _, err = running.wait_end()
    assert code == 1
    assert "did not drain within 0.3 s; killed: " in err
    assert_adds_up(running.summary())


def test_a_zygote_that_is_stopped_does_not_hold_the_end_up(tmp_path: Path) -> None:
    stages = hanging(tmp_path)
    with started(write_pipeline(tmp_path, stages), "--stop-timeout", "0.3") as running:
        wait_for(lambda: written(tmp_path), "a first frame")
        pids = running.wait_workers("zygote", "src", "slow", "out")
        os.kill(pids["zygote"], signal.SIGSTOP)
        os.kill(running.pid, signal.SIGTERM)
        code, _, err = running.wait_end()
    assert code == 1
    assert "did not drain within 0.3 s; killed: " in err
    assert_adds_up(running.summary())
    wait_for(lambda: all(map(is_gone, pids.values())), "all gone")


def test_a_killed_supervisor_leaves_nothing(tmp_path: Path) -> None:
    """20 times the same name: processes gone, folder gone, name free, nothing in /dev/shm."""
    name = unique_name()
    file = write_pipeline(tmp_path, counting(tmp_path), name=name)
    shared = set(Path("/dev/shm").iterdir())
    for round_number in range(20):
        with started(file) as running:
            pids = running.wait_workers("zygote", *(["out"] if round_number % 4 == 0 else []))
            os.kill(running.pid, signal.SIGKILL)
            running.process.wait()
            wait_for(lambda pids=pids: all(map(is_gone, pids.values())), "all gone", timeout_s=2)
        wait_for(lambda: not folders_of(name), "the folder gone", timeout_s=2)
    assert set(Path("/dev/shm").iterdir()) <= shared
    code, _, err, summary = run(file, "--max-frames", "5")
    assert code == 0, err
    assert summary["frames"]["processed"] == 5


def test_a_port_of_a_killed_run_is_free(tmp_path: Path) -> None:
    """O6: no orphan keeps it."""
    stages = {
        "src": {"kind": "Numbers", "count": 10**9},
        "out": {"kind": "Listen", "inputs": {"n": "src.n"}, "path": str(tmp_path / "out.txt")},
    }
    with started(write_pipeline(tmp_path, stages)) as running:
        wait_for(lambda: written(tmp_path), "the port")
        port = int((tmp_path / "out.txt").read_text())
        pids = running.wait_workers("zygote", "src", "out")
        os.kill(running.pid, signal.SIGKILL)
        running.process.wait()
        wait_for(lambda: all(map(is_gone, pids.values())), "all gone", timeout_s=2)
    socket.create_server(("127.0.0.1", port)).close()


@pytest.fixture
def own_runtime_dir(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A folder for the sockets of this test's runs alone: others would sweep what it looks at."""
    with tempfile.TemporaryDirectory(prefix="edgert-") as folder:
        monkeypatch.setenv("XDG_RUNTIME_DIR", folder)
        yield


@pytest.mark.usefixtures("own_runtime_dir")
def test_a_folder_that_was_left_is_swept(tmp_path: Path) -> None:
    """Supervisor and zygote killed at once: the next run, of any name, removes what they left."""
    name = unique_name()
    file = write_pipeline(tmp_path, counting(tmp_path), name=name)
    with started(file) as running:
        pids = running.wait_workers("zygote", "src", "one", "two", "out")
        os.kill(pids["zygote"], signal.SIGSTOP)
        os.kill(running.pid, signal.SIGKILL)
        running.process.wait()
        os.kill(pids["zygote"], signal.SIGKILL)
        wait_for(lambda: all(map(is_gone, pids.values())), "all gone", timeout_s=2)
    assert folders_of(name)
    other = write_pipeline(tmp_path, counting(tmp_path))
    assert run(other, "--max-frames", "5")[0] == 0
    assert not list(runtime_dir().iterdir())


def test_a_killed_zygote_ends_the_run(tmp_path: Path) -> None:
    with started(write_pipeline(tmp_path, counting(tmp_path))) as running:
        pids = running.wait_workers("zygote", "src", "one", "two", "out")
        os.kill(pids["zygote"], signal.SIGKILL)
        code, _, err = running.wait_end()
        wait_for(lambda: all(map(is_gone, pids.values())), "all gone", timeout_s=2)
    assert code == 1
    assert "zygote: ended with code -9, and every worker with it." in err
    assert "Traceback" not in err
    assert_adds_up(running.summary())


def test_a_name_that_runs_is_refused(tmp_path: Path) -> None:
    file = write_pipeline(tmp_path, counting(tmp_path))
    with started(file) as running:
        running.wait_workers("out")
        code, out, err, _ = run(file)
        assert code == 2
        assert f"is running already (process {running.pid})" in err
        assert not out
        os.kill(running.pid, signal.SIGTERM)
        assert running.wait_end()[0] == 0


def test_twenty_runs_leave_nothing_in_the_process_that_made_them(tmp_path: Path) -> None:
    pipeline = load(tmp_path, counting(tmp_path))
    pipeline.run(RunOptions(max_frames=20))
    fds, threads = open_fds(), threading.active_count()
    for _ in range(20):
        assert pipeline.run(RunOptions(max_frames=20)).frames["processed"] == 20
    assert open_fds().keys() == fds.keys()
    assert threading.active_count() == threads
    assert not descendants(os.getpid())
    assert not folders_of(pipeline.plan.name)

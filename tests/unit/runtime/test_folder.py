"""A run's name and folder: one of a name, for this user alone, and nothing left."""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from edgert.errors import BusyError, ResourceError
from edgert.runtime import folder as folders
from edgert.runtime.folder import RunFolder, running, runtime_dir
from tests.process.runs import unique_name


@pytest.fixture
def base(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Where folders are made; pytest's own temporary folders have paths too long for sockets."""
    with tempfile.TemporaryDirectory(prefix="edgert-") as folder:
        monkeypatch.setenv("XDG_RUNTIME_DIR", folder)
        yield Path(folder) / "edgert"


def test_the_folder_is_made_and_removed(base: Path) -> None:
    name = unique_name()
    folder = RunFolder(name)
    assert folder.path.parent == base
    assert folder.path.stat().st_mode & 0o777 == base.stat().st_mode & 0o777 == 0o700
    folder.release()
    assert list(base.iterdir()) == []


def test_a_name_is_held_once_and_free_again(base: Path) -> None:
    name = unique_name()
    folder = RunFolder(name)
    for _ in range(20):  # more often than the name's socket can be asked
        with pytest.raises(BusyError, match=f"is running already .process {os.getpid()}."):
            RunFolder(name)
    other = RunFolder(f"{name}-2")
    folder.release()
    RunFolder(name).release()
    assert other.path.is_dir()
    other.release()


def test_what_a_killed_run_left_is_swept(base: Path) -> None:
    """Of whatever name; never that of a living run, and nothing that is no run's folder."""
    name, alive = unique_name(), RunFolder(unique_name())
    for left in (base / f"{name}.1", base / f"{name}-2.{os.getpid()}"):
        left.mkdir()
        (left / "control.sock").touch()
    away = base.parent / "away"
    away.mkdir()
    kept = [base / "something", base / f"{name}-3.1", base / f"{name}-4.1"]
    kept[0].mkdir()
    kept[1].symlink_to(away)
    kept[2].touch()
    RunFolder(name).release()
    assert set(base.iterdir()) == {alive.path, *kept}
    assert away.is_dir()
    alive.release()


def test_what_a_run_left_that_was_killed_before_its_folder_had_its_name_is_swept(
    base: Path,
) -> None:
    code = """if True:
        import os, signal
        from pathlib import Path
        from edgert.runtime.folder import RunFolder
        Path.rename = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
        RunFolder("killed")
    """
    done = subprocess.run([sys.executable, "-c", code], check=False, timeout=30)
    assert done.returncode == -signal.SIGKILL
    (left,) = base.iterdir()
    assert left.name.startswith(".killed.")
    RunFolder(unique_name()).release()
    assert not list(base.iterdir())


def test_a_folder_that_is_swept_before_it_is_locked_is_made_again(
    base: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is no other than one that was left, until then."""
    swept = []
    mkdir = Path.mkdir

    def swept_at_once(path: Path, *args: Any, **keys: Any) -> None:
        mkdir(path, *args, **keys)
        if path.parent == base and len(swept) < 3:
            swept.append(path)
            folders._sweep(base)

    base.mkdir(mode=0o700)
    monkeypatch.setattr(Path, "mkdir", swept_at_once)
    folder = RunFolder(unique_name())
    assert len(swept) == 3
    assert list(base.iterdir()) == [folder.path]
    folder.release()


def test_who_sweeps_late_leaves_the_next_run_of_the_same_process_alone(
    base: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its folder has the name of the one that the sweeper has opened, and is another."""
    runs = [RunFolder(unique_name())]
    flock = fcntl.flock

    def begin_anew_meanwhile(opened: int, how: int) -> None:
        monkeypatch.undo()
        monkeypatch.setenv("XDG_RUNTIME_DIR", str(base.parent))
        runs[0].release()
        runs.append(RunFolder(runs[0].path.name.partition(".")[0]))
        flock(opened, how)

    monkeypatch.setattr(fcntl, "flock", begin_anew_meanwhile)
    folders._sweep(base)
    assert list(base.iterdir()) == [runs[1].path] == [runs[0].path]
    runs[1].release()


def test_runs_that_start_at_once_sweep_each_other_not(base: Path) -> None:
    RunFolder(unique_name()).release()
    folders: list[RunFolder] = []
    everybody = threading.Barrier(8)

    def start() -> None:
        everybody.wait()
        folders.extend(RunFolder(unique_name()) for _ in range(5))

    threads = [threading.Thread(target=start) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {folder.path for folder in folders} == set(base.iterdir())
    assert len(folders) == 40
    for folder in folders:
        folder.release()


def test_a_path_too_long_for_a_socket_is_refused(
    base: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    long = base.parent / ("x" * 100)
    long.mkdir()
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(long))
    name = unique_name()
    with pytest.raises(ResourceError, match="is too long a path for a socket"):
        RunFolder(name)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(base.parent))
    RunFolder(name).release()  # the name was not kept


@pytest.mark.parametrize("mode", [0o755, 0o770, 0o777])
def test_a_folder_that_others_can_enter_is_refused(base: Path, mode: int) -> None:
    base.mkdir()
    base.chmod(mode)
    with pytest.raises(ResourceError, match="is not this user's alone"):
        runtime_dir()


def test_a_link_in_its_place_is_refused(base: Path) -> None:
    real = base.parent / "real"
    real.mkdir(mode=0o700)
    base.symlink_to(real)
    with pytest.raises(ResourceError, match="is not this user's alone"):
        runtime_dir()


def test_without_a_runtime_folder_a_temporary_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("XDG_RUNTIME_DIR", raising=False)
    assert runtime_dir().name == f"edgert-{os.getuid()}"


def test_root_sees_the_runs_of_services_and_its_own_first(
    base: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name, own = unique_name(), unique_name()
    of_services = [RunFolder(name), RunFolder(own)]
    monkeypatch.setattr(folders, "_OF_SERVICES", base)
    with tempfile.TemporaryDirectory(prefix="edgert-") as other:
        monkeypatch.setenv("XDG_RUNTIME_DIR", other)
        assert (name in running()) == (os.getuid() == 0)
        mine = Path(other) / "edgert" / f"{own}.{os.getpid()}"
        mine.mkdir(mode=0o700)
        assert running()[own] == mine / "ctl.sock"
        monkeypatch.setattr(folders.os, "getuid", lambda: 12345)
        monkeypatch.setattr(folders, "runtime_dir", lambda: base.parent)
        assert running() == {}
    monkeypatch.undo()
    for folder in of_services:
        folder.release()

"""What SECURITY.md says of a running pipeline, looked up in the kernel."""

from __future__ import annotations

import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.process.runs import Running, folders_of, started, wait_for, write_pipeline
from tests.unit.stages.source.media import make_video

pytestmark = pytest.mark.process

PARSERS = ("libav", "/av/", "cv2", "openvino", "onnx", "tensorflow", "litert", "PIL")
NAME = "test-boundaries"
LISTENS = "0A"


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """A run that reads and writes a video, and goes on for as long as it is looked at."""
    folder = tmp_path_factory.mktemp("run")
    make_video(folder / "in.mp4", codec="mpeg4")
    stages = {
        "camera": {"kind": "source.video", "uri": "in.mp4"},
        "record": {
            "kind": "sink.video",
            "inputs": {"image": "camera.image"},
            "path": str(folder / "out.mkv"),
            "codec": "mpeg4",
        },
        "src": {"kind": "Numbers", "count": 10**9},
        "out": {"kind": "Write", "inputs": {"n": "src.n"}, "path": "/dev/null"},
    }
    with started(write_pipeline(folder, stages, name=NAME)) as run:
        run.wait_workers("camera", "record", "src", "out")
        wait_for((folder / "out.mkv").exists, "the recording")
        yield run


def mapped(pid: int) -> set[str]:
    lines = Path(f"/proc/{pid}/maps").read_text().splitlines()
    return {line.split()[-1] for line in lines if "/" in line}


def test_the_supervisor_has_no_parser_of_media_or_models(running: Running) -> None:
    assert not [file for file in mapped(running.pid) if any(name in file for name in PARSERS)]


def test_the_control_socket_is_the_users_alone(running: Running) -> None:
    (folder,) = folders_of(NAME)
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    sockets = [file for file in folder.iterdir() if file.is_socket()]
    assert sockets
    assert {stat.S_IMODE(file.stat().st_mode) for file in sockets} == {0o600}


def test_no_process_of_a_run_listens_on_the_network(running: Running) -> None:
    pids = [running.pid, *running.wait_workers().values()]
    sockets = set()
    for pid in pids:
        for fd in Path(f"/proc/{pid}/fd").iterdir():
            try:
                target = str(fd.readlink())
            except FileNotFoundError:  # closed since it was listed
                continue
            if target.startswith("socket:["):
                sockets.add(target[8:-1])
    for table in ("tcp", "tcp6", "udp", "udp6"):
        file = Path(f"/proc/{running.pid}/net/{table}")
        rows = [line.split() for line in file.read_text().splitlines()[1:]] if file.exists() else []
        assert not [row for row in rows if row[9] in sockets and row[3] in (LISTENS, "07")]

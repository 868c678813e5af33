"""Live sources in real runs, and real RTSP cameras: late, frozen, gone, back, and broken."""

import json
import os
import signal
import socket
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from edgert.stages.harness import StageRun, opened
from edgert.stages.live import OFFLINE, ONLINE, STALLED
from edgert.stages.source.video import VideoSource
from tests.cameras import (
    Proxy,
    RtspServer,
    free_port,
    make_h264,
    mjpeg_server,
    require_gstreamer,
    rtsp_server,
)
from tests.process.runs import assert_adds_up, descendants, run, started, wait_for, write_pipeline
from tests.unit.stages.source.media import plan_context

pytestmark = pytest.mark.process

QUICK = {"delay_ms": 50, "max_delay_ms": 200}


def camera(uri: str, **settings: Any) -> dict[str, Any]:
    return {"kind": "source.video", "uri": uri, "max_size": [320, 240], **settings}


def see(folder: Path, *streams: str, **settings: Any) -> dict[str, Any]:
    inputs = {"image": [f"{stream}.image" for stream in streams]}
    return {"kind": "See", "inputs": inputs, "path": str(folder / "seen"), **settings}


def seen(folder: Path) -> list[dict[str, Any]]:
    file = folder / "seen"
    lines = file.read_text().splitlines() if file.exists() else []
    return [json.loads(line) for line in lines if line.endswith("}")]


def test_an_offline_camera_delays_nobody_and_nothing_shows_its_password(tmp_path: Path) -> None:
    stages = {
        "dead": camera(f"rtsp://bob:${{CAM_PASSWORD}}@127.0.0.1:{free_port()}/1", reconnect=QUICK),
        "front": {},
        "look": see(tmp_path, "front", "dead"),
    }
    with mjpeg_server() as server:
        stages["front"] = camera(server.url)
        file = write_pipeline(tmp_path, stages)
        environment = {**os.environ, "CAM_PASSWORD": "hunter2"}
        with started(file, "--log-level", "debug", env=environment) as running:
            wait_for(lambda: len(seen(tmp_path)) >= 5, "frames of the other camera")
            for pid in (running.pid, *descendants(running.pid)):
                assert b"hunter2" not in Path(f"/proc/{pid}/cmdline").read_bytes()
            running.process.send_signal(signal.SIGTERM)
            code, out, err = running.wait_end()
            summary = running.summary()
    assert code == 0
    assert "hunter2" not in out + err + running.summary_file.read_text()
    assert {line["stream"] for line in seen(tmp_path)} == {"front"}
    dead, front = summary["sources"]["dead"], summary["sources"]["front"]
    assert (dead["state"], dead["reason"]) == (
        "connecting",
        "cannot be opened (connection refused)",
    )
    assert (front["state"], front["epochs"], front["reconnects"]) == ("online", 1, 0)
    assert summary["streams"]["dead"]["read"] == 0
    assert summary["streams"]["front"]["processed"] == len(seen(tmp_path))
    assert_adds_up(summary)


def test_a_camera_that_never_answers_keeps_nobody_from_stopping(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        uri = f"rtsp://127.0.0.1:{silent.getsockname()[1]}/1"
        stages = {"cam": camera(uri, open_timeout_s=3600), "look": see(tmp_path, "cam")}
        with started(write_pipeline(tmp_path, stages)) as running:
            connection, _ = silent.accept()
            running.process.send_signal(signal.SIGTERM)
            code, _, err = running.wait_end()
            summary = running.summary()
            connection.close()
    assert (code, "killed" in err) == (0, False), err
    assert summary["sources"]["cam"]["state"] == "connecting"


def test_where_all_are_required_one_that_is_not_there_ends_the_run(tmp_path: Path) -> None:
    stages = {"cam": camera(f"http://127.0.0.1:{free_port()}/"), "look": see(tmp_path, "cam")}
    file = write_pipeline(tmp_path, stages)
    code, _, err, _ = run(file, "--set", "limits.require=all")
    assert code == 1
    assert "stage 'cam': the camera cannot be opened (connection refused)" in err


def test_a_slow_stage_gets_the_newest_frames_and_all_others_are_counted(tmp_path: Path) -> None:
    with mjpeg_server(wait_s=0.01) as server:
        stages = {"cam": camera(server.url), "look": see(tmp_path, "cam", wait_ms=50)}
        file = write_pipeline(tmp_path, stages, in_flight=2)
        code, _, _, summary = run(file, "--max-frames", "20")
    assert code == 0
    counts = summary["streams"]["cam"]
    assert counts["processed"] == 20
    assert counts["dropped"] > 20
    assert_adds_up(summary)
    lines = seen(tmp_path)
    assert [line["sequence"] for line in lines] == list(range(20))
    # Two frames of 50 ms each are before it, whatever the camera does; the rest is the machine's.
    assert sorted(line["age_ms"] for line in lines)[10] < 4 * 50


def test_a_camera_whose_worker_is_killed_goes_on_in_another_epoch(tmp_path: Path) -> None:
    with mjpeg_server() as server:
        stages = {"cam": camera(server.url), "look": see(tmp_path, "cam")}
        with started(write_pipeline(tmp_path, stages)) as running:
            pids = running.wait_workers("cam")
            wait_for(lambda: seen(tmp_path), "a frame")
            os.kill(pids["cam"], signal.SIGKILL)
            wait_for(lambda: seen(tmp_path)[-1]["epoch"] == 1, "a frame of the next epoch")
            running.process.send_signal(signal.SIGTERM)
            code, _, err = running.wait_end()
            summary = running.summary()
    assert code == 0, err
    assert summary["sources"]["cam"]["epochs"] == 2
    epochs = [line["epoch"] for line in seen(tmp_path)]
    assert epochs == sorted(epochs)
    assert_adds_up(summary)


def test_a_camera_that_is_given_up_ends_its_stream_and_not_the_others(tmp_path: Path) -> None:
    with mjpeg_server() as server:
        once = {"attempts": 1, "delay_ms": 10}
        stages = {
            "gone": camera(f"http://127.0.0.1:{free_port()}/", reconnect=once),
            "cam": camera(server.url),
            "look": see(tmp_path, "gone", "cam"),
        }
        code, _, err, summary = run(write_pipeline(tmp_path, stages), "--max-frames", "30")
    assert code == 1
    assert "stage 'gone': the camera cannot be opened (connection refused), and was tried" in err
    assert summary["streams"]["cam"]["processed"] > 0
    assert summary["sources"]["gone"]["state"] == "offline"


# RTSP


@pytest.fixture(scope="module")
def video(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A real video as a camera sends it; a test picture where there are no assets."""
    require_gstreamer()
    source: Path | None = None
    try:
        source = request.getfixturevalue("vtest")
    except pytest.skip.Exception:
        source = None
    return make_h264(tmp_path_factory.mktemp("rtsp") / "camera.mp4", source)


@pytest.fixture
def rtsp(video: Path) -> Iterator[RtspServer]:
    with rtsp_server(video) as server:
        yield server


def watching(folder: Path, uri: str, **settings: Any) -> Any:
    options = {"read_timeout_s": 1, "open_timeout_s": 3, "reconnect": QUICK, **settings}
    return opened(VideoSource, {"uri": uri, **options}, {}, plan_context(folder))


def take(run: StageRun, frames: int = 1) -> list[Any]:
    feed: Any = run.stage.feed  # type: ignore[attr-defined]
    feed.start()
    headers = []
    for _ in range(frames):
        wait_for(feed.is_ready, "a frame")
        found = run.grab()
        assert found is not None
        headers.append(found["image"].header)
    return headers


def wait_state(run: StageRun, state: str) -> None:
    feed: Any = run.stage.feed  # type: ignore[attr-defined]
    feed.start()
    wait_for(lambda: feed.condition.state == state, f"{state}, is {feed.condition}")


@pytest.mark.parametrize("transport", ["tcp", "udp"])
def test_an_rtsp_camera_freezes_and_thaws(tmp_path: Path, rtsp: RtspServer, transport: str) -> None:
    with watching(tmp_path, rtsp.url, transport=transport) as run:
        headers = take(run, 4)
        assert [header.epoch for header in headers] == [0] * 4
        steps = [b.pts_ns - a.pts_ns for a, b in pairwise(headers[1:])]
        # By the camera's clock, not by arrival.
        assert all(step > 0 and step % 100_000_000 == 0 for step in steps)
        rtsp.signal(signal.SIGSTOP)  # the connection stays open
        wait_state(run, STALLED)
        wait_state(run, OFFLINE)
        rtsp.signal(signal.SIGCONT)
        wait_state(run, ONLINE)
        while take(run)[0].epoch == 0:
            pass
        assert run.stage.feed.condition.reconnects == 1  # type: ignore[attr-defined]


def test_an_rtsp_camera_is_late_goes_and_comes_back(tmp_path: Path, rtsp: RtspServer) -> None:
    rtsp.stop()
    with watching(tmp_path, rtsp.url) as run:
        run.stage.feed.start()  # type: ignore[attr-defined]
        wait_for(lambda: run.stage.feed.condition.reason, "a reason")  # type: ignore[attr-defined]
        rtsp.start()
        wait_state(run, ONLINE)
        rtsp.stop()
        wait_state(run, OFFLINE)
        rtsp.start()
        wait_state(run, ONLINE)
        assert run.stage.feed.condition.epochs == 2  # type: ignore[attr-defined]


def test_broken_packets_cost_frames_and_not_the_camera(tmp_path: Path, rtsp: RtspServer) -> None:
    proxy = Proxy(rtsp.port)
    try:
        with watching(tmp_path, f"rtsp://127.0.0.1:{proxy.port}/cam") as run:
            feed: Any = run.stage.feed  # type: ignore[attr-defined]
            take(run)
            proxy.spoil = True
            harmed = lambda: feed.take_unseen().lost or take(run)[0].is_partial  # noqa: E731
            wait_for(lambda: harmed() or feed.condition.reconnects, "harm")
            proxy.spoil = False
            wait_state(run, ONLINE)
            take(run, 2)
            before = feed.condition.reconnects
            proxy.cut()  # in the middle of whatever is sent
            wait_for(lambda: feed.condition.reconnects > before, "another connection")
            take(run)
    finally:
        proxy.close()


def test_rtsp_with_credentials_of_the_camera(tmp_path: Path, video: Path) -> None:
    secret = tmp_path / "secret"
    secret.touch(mode=0o600)
    secret.write_text("bob:p@ss/w\n")
    with rtsp_server(video, "bob:p@ss/w") as server:
        with watching(tmp_path, server.url, credentials="secret") as run:
            take(run)
        with watching(tmp_path, server.url) as run:
            run.stage.feed.start()  # type: ignore[attr-defined]
            condition = wait_for(lambda: run.stage.feed.condition.reason, "a reason")  # type: ignore[attr-defined]
            assert condition == "refused the credentials"


def test_a_server_that_says_nothing_is_noticed(tmp_path: Path, rtsp: RtspServer) -> None:
    rtsp.signal(signal.SIGSTOP)
    with watching(tmp_path, rtsp.url, open_timeout_s=0.5) as run:
        run.stage.feed.start()  # type: ignore[attr-defined]
        reason = wait_for(lambda: run.stage.feed.condition.reason, "a reason")  # type: ignore[attr-defined]
        assert reason == "did not answer within 0.5 s"
    rtsp.signal(signal.SIGCONT)

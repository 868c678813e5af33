"""Cameras in one process: a real HTTP server of this test, and FFmpeg's own test device."""

import base64
import logging
import threading
from contextlib import AbstractContextManager
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from edgert.errors import ResourceError, SourceError, UserError
from edgert.pipeline.adapter import read_as
from edgert.stages.harness import StageRun, opened
from edgert.stages.live import CONNECTING, OFFLINE, ONLINE, STALLED, Feed
from edgert.stages.source.address import address_of, with_credentials
from edgert.stages.source.video import VideoSource
from edgert.tensor import FrameHeader
from tests.cameras import free_port, jpeg, mjpeg_server
from tests.process.runs import wait_for

from .media import plan_context

QUICK = {
    "open_timeout_s": 2,
    "read_timeout_s": 0.6,
    "first_frame_timeout_s": 2,
    "reconnect": {"delay_ms": 20, "max_delay_ms": 60},
    "max_size": [128, 96],
}
TEST_PICTURES = "testsrc2=size=64x48:rate=200"


def watching(folder: Path, uri: str, **settings: Any) -> AbstractContextManager[StageRun]:
    return opened(VideoSource, {**QUICK, "uri": uri, **settings}, {}, plan_context(folder))


def feed_of(run: StageRun) -> Feed:
    feed: Feed = run.stage.feed  # type: ignore[attr-defined]
    return feed


def next_header(run: StageRun) -> FrameHeader:
    feed_of(run).start()
    wait_for(feed_of(run).is_ready, "a frame")
    found = run.grab()
    assert found is not None
    return found["image"].header


def wait_state(run: StageRun, state: str) -> None:
    feed_of(run).start()
    wait_for(lambda: feed_of(run).condition.state == state, state)


def test_frames_of_an_http_camera_are_there_with_times_of_arrival(tmp_path: Path) -> None:
    with mjpeg_server() as server, watching(tmp_path, server.url) as run:
        headers = [next_header(run) for _ in range(5)]
    assert all((each.width, each.height, each.epoch) == (64, 48, 0) for each in headers)
    assert all(a.pts_ns < b.pts_ns for a, b in pairwise(headers))
    arrived = [each.captured_ns - headers[0].captured_ns for each in headers]
    assert [each.pts_ns - headers[0].pts_ns for each in headers] == arrived
    assert feed_of(run).condition.media == "mjpeg 64x48, software decoder"


def test_a_camera_that_is_not_there_is_waited_for(tmp_path: Path, caplog: Any) -> None:
    caplog.set_level(logging.INFO)
    with mjpeg_server() as server:
        server.stop()
        with watching(tmp_path, server.url) as run:
            wait_for(lambda: feed_of(run).condition.reason or feed_of(run).start(), "a reason")
            assert feed_of(run).condition.state == CONNECTING
            assert feed_of(run).condition.reason == "cannot be opened (connection refused)"
            assert not feed_of(run).is_ready()
            server.start()
            assert next_header(run).epoch == 0
            wait_state(run, ONLINE)
            assert feed_of(run).condition.reconnects == 0
    said = [record.getMessage() for record in caplog.records]
    assert len([line for line in said if "connection refused" in line]) == 1  # not at each try
    assert len([line for line in said if "is online" in line]) == 1


def test_a_camera_that_comes_back_begins_an_epoch(tmp_path: Path) -> None:
    with mjpeg_server() as server, watching(tmp_path, server.url) as run:
        assert next_header(run).epoch == 0
        server.stop()
        wait_state(run, OFFLINE)
        server.start()
        wait_state(run, ONLINE)
        header = wait_for(lambda: _of_epoch(run, 1), "a frame of the second epoch")
        assert header.pts_ns < 5_000_000_000
        assert (feed_of(run).condition.reconnects, feed_of(run).condition.epochs) == (1, 2)


def _of_epoch(run: StageRun, epoch: int) -> FrameHeader | None:
    header = next_header(run)
    return header if header.epoch == epoch else None


def test_a_camera_that_comes_and_goes_does_not_fill_the_log(tmp_path: Path, caplog: Any) -> None:
    caplog.set_level(logging.INFO)
    short = f"{TEST_PICTURES}:duration=0.02"
    with watching(tmp_path, short, format="lavfi") as run:
        feed_of(run).start()
        wait_for(lambda: feed_of(run).condition.reconnects >= 5, "its return")
    said = [record.getMessage() for record in caplog.records]
    assert len([line for line in said if "ended the stream" in line]) == 1
    assert len([line for line in said if "is back" in line]) == 1


def test_a_frozen_camera_is_stalled_then_gone_then_back(tmp_path: Path) -> None:
    with mjpeg_server() as server, watching(tmp_path, server.url) as run:
        next_header(run)
        server.frozen.set()  # and keeps the connection
        wait_state(run, STALLED)
        wait_state(run, OFFLINE)
        assert feed_of(run).condition.reason == "sent nothing for 0.6 s"
        server.frozen.clear()
        wait_state(run, ONLINE)


def test_of_what_nobody_has_taken_the_newest_is_kept_and_the_rest_counted(tmp_path: Path) -> None:
    with watching(tmp_path, TEST_PICTURES, format="lavfi", options={}) as run:
        feed = feed_of(run)
        feed.start()
        dropped = 0

        def many() -> bool:
            nonlocal dropped
            dropped += feed.take_unseen().dropped
            return dropped >= 20

        wait_for(many, "dropped frames")
        before = dropped
        header = next_header(run)
        dropped += feed.take_unseen().dropped  # and those that came after it
        # 5 ms a frame: all those before it were dropped.
        assert before * 4_900_000 <= header.pts_ns <= dropped * 5_100_000


def test_a_larger_picture_in_mid_stream_is_scaled_and_counted(tmp_path: Path, caplog: Any) -> None:
    with mjpeg_server() as server, watching(tmp_path, server.url) as run:
        assert next_header(run).width == 64
        server.picture = jpeg(256, 192)
        header = wait_for(lambda: _of_width(run, 256), "a larger frame")
        assert header.height == 192
        assert feed_of(run).take_unseen().scaled == 1
        assert header.transform == (2.0, 0.0, 0.0, 0.0, 2.0, 0.0)
        assert header.epoch == 0
    assert "frames of 256x192 are scaled down to fit 128x96" in caplog.text
    assert "larger than the slot: scaled down" in caplog.text


def _of_width(run: StageRun, width: int) -> FrameHeader | None:
    header = next_header(run)
    return header if header.width == width else None


def test_pictures_that_are_none_are_lost_and_counted(tmp_path: Path) -> None:
    with mjpeg_server() as server, watching(tmp_path, server.url) as run:
        next_header(run)
        good, server.picture = server.picture, b"\xff\xd8" + bytes(300)
        feed = feed_of(run)
        wait_for(lambda: feed.take_unseen().lost, "a lost frame")
        server.picture = good
        wait_state(run, ONLINE)
        next_header(run)


def test_a_server_of_something_else_is_no_camera(tmp_path: Path) -> None:
    with mjpeg_server() as server, watching(tmp_path, server.url) as run:
        server.picture = b"<html>log in first</html>"
        feed_of(run).start()
        wait_for(lambda: feed_of(run).condition.reason, "a reason")
        assert feed_of(run).condition.state == CONNECTING


@pytest.mark.parametrize("right", [True, False])
def test_credentials_come_from_a_file_and_are_never_shown(
    tmp_path: Path, caplog: Any, right: bool
) -> None:
    caplog.set_level(logging.DEBUG)
    secret = tmp_path / "camera.secret"
    secret.touch(mode=0o600)
    secret.write_text("bob:p@ss/w:rd\n" if right else "bob:wrong-one\n")
    with mjpeg_server() as server:
        server.credentials = "Basic " + base64.b64encode(b"bob:p@ss/w:rd").decode()
        with watching(tmp_path, server.url, credentials="camera.secret") as run:
            if right:
                next_header(run)
            else:
                feed_of(run).start()
                wait_for(lambda: feed_of(run).condition.reason, "a reason")
                assert feed_of(run).condition.reason == "refused the credentials"
            said = caplog.text + repr(feed_of(run).condition)
    assert "p@ss" not in said
    assert "wrong-one" not in said


@pytest.mark.parametrize(
    ("mode", "text", "fault"),
    [
        (0o644, "bob:secret", "may be read by others (mode 0644)"),
        (0o600, "bob", "holds no credentials"),
        (0o600, "", "holds no credentials"),
        (None, "", "no such file or directory"),
    ],
)
def test_a_file_of_credentials_must_be_right(
    tmp_path: Path, mode: int | None, text: str, fault: str
) -> None:
    file = tmp_path / "secret"
    if mode is not None:
        file.write_text(text)
        file.chmod(mode)
    with pytest.raises(ResourceError) as caught:
        with_credentials("rtsp://old:one@h/1", file, "stage 'cam'")
    assert f"stage 'cam', credentials '{file}': {fault}." in str(caught.value)
    assert "secret" not in caught.value.faults[0].fault


def test_credentials_of_a_file_replace_those_of_the_address(tmp_path: Path) -> None:
    file = tmp_path / "secret"
    file.touch(mode=0o600)
    file.write_text("bob:a@b/c\n")
    assert with_credentials("rtsp://old:one@h:554/1", file, "") == "rtsp://bob:a%40b%2Fc@h:554/1"


def test_what_holds_an_address_does_not_show_it() -> None:
    address = address_of("rtsp://bob:secret@h/1", None, "udp", {})
    assert "secret" not in repr(address)
    assert address.options["rtsp_transport"] == "udp"
    assert "file" not in address.options["protocol_whitelist"]


def test_without_reconnecting_the_end_of_the_stream_is_the_end(tmp_path: Path) -> None:
    short = f"{TEST_PICTURES}:duration=0.05"
    with watching(tmp_path, short, format="lavfi", reconnect=False) as run:
        while run.grab() is not None:
            pass
        assert feed_of(run).condition.state == OFFLINE


def test_a_camera_is_given_up_after_so_many_attempts(tmp_path: Path) -> None:
    uri = f"rtsp://bob:secret@127.0.0.1:{free_port()}/1"
    reconnect = {"attempts": 2, "delay_ms": 10}
    with watching(tmp_path, uri, reconnect=reconnect) as run:
        with pytest.raises(SourceError, match="was tried often enough") as told:
            run.grab()
        assert "secret" not in str(told.value)
        assert told.value.exit_code == 1


@pytest.mark.parametrize(
    ("uri", "format_", "reason"),
    [
        ("/dev/video97", None, "is not there: no such device"),
        ("/dev/null", "v4l2", "cannot be opened (inappropriate ioctl for device)"),
        ("nothing", "nosuch", "cannot be opened: FFmpeg has no format 'nosuch'"),
    ],
)
def test_what_is_wrong_with_a_device_is_said(
    tmp_path: Path, uri: str, format_: str | None, reason: str
) -> None:
    with watching(tmp_path, uri, format=format_) as run:
        feed_of(run).start()
        wait_for(lambda: feed_of(run).condition.reason, "a reason")
        assert feed_of(run).condition.reason == reason


@pytest.mark.parametrize("decoder", ["vaapi", "v4l2m2m", "nosuchthing"])
def test_a_decoder_that_cannot_be_had_is_told_and_software_decodes(
    tmp_path: Path, caplog: Any, decoder: str
) -> None:
    with mjpeg_server() as server, watching(tmp_path, server.url, decoder=decoder) as run:
        next_header(run)
        wait_state(run, ONLINE)
        media = feed_of(run).condition.media
    assert media.startswith("mjpeg 64x48, software decoder (")
    assert f"decoder '{decoder}' cannot be had: " in caplog.text


def test_waiting_for_a_camera_that_is_not_there_says_why(tmp_path: Path) -> None:
    uri = f"http://127.0.0.1:{free_port()}/"
    with watching(tmp_path, uri) as run, pytest.raises(SourceError, match="connection refused"):
        feed_of(run).wait_online()


def test_hanging_up_takes_no_time_however_silent_a_camera_is(tmp_path: Path) -> None:
    with mjpeg_server() as server:
        server.frozen.set()
        with watching(tmp_path, server.url, read_timeout_s=3600) as run:
            feed_of(run).start()
            wait_for(lambda: server.connections, "a connection")
        names = [thread.name for thread in threading.enumerate()]
        server.frozen.clear()
    assert "camera.camera" in names  # it was left to the end of its process, not waited for
    wait_for(lambda: "camera.camera" not in [t.name for t in threading.enumerate()], "its end")


@pytest.mark.parametrize(
    ("settings", "fault"),
    [
        ({"uri": "a.mp4", "transport": "udp"}, "`transport`: of a camera, not of a file"),
        ({"uri": "rtsp://h/1", "loop": 2}, "`loop`: of a file, which this camera is not"),
        ({"uri": "udp://0.0.0.0:5000"}, "udp:// alone does not say what comes"),
        ({"uri": "rtsp://u:a/b@h/1"}, "the URL's host and port cannot be told"),
        ({"uri": "rtsp://u:p@h:99999/1"}, "the URL's host and port cannot be told"),
        ({"uri": "rtsp:///1"}, "the URL names no host"),
        ({"uri": "rtsp:/cam/1"}, "two slashes are missing after rtsp: so it would be a file"),
        ({"uri": "RTSP:cam/1"}, "two slashes are missing after rtsp: so it would be a file"),
        ({"uri": "rtsp://u:a b@h/1"}, "the URL has a blank in it"),
        ({"uri": "/dev/video0", "credentials": "x"}, "`credentials` belong to a URL"),
    ],
)
def test_options_that_do_not_suit_the_uri_are_refused(settings: dict[str, Any], fault: str) -> None:
    with pytest.raises(ValueError, match="validation error") as caught:
        read_as(VideoSource.options, settings)
    assert fault in str(caught.value)


@pytest.mark.parametrize("uri", ["rtsp://h/1", "https://h/a", "/dev/video3", "/dev/v4l/by-id/x"])
def test_a_camera_need_not_be_there_to_be_planned(tmp_path: Path, uri: str) -> None:
    options = read_as(VideoSource.options, {"uri": uri})
    port = VideoSource.plan(options, {}, plan_context(tmp_path))["image"]
    assert port.tensors["y"].shape == (1080, 1920)


def test_a_device_that_no_format_is_given_for_is_refused(tmp_path: Path) -> None:
    options = read_as(VideoSource.options, {"uri": "/dev/null"})
    with pytest.raises(UserError, match="is a device"):
        VideoSource.plan(options, {}, plan_context(tmp_path))

import logging
import os
import socket
import stat
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
import zmq

from edgert.errors import BusyError, UserError
from edgert.pipeline.adapter import read_as
from edgert.results import decode
from edgert.stages.harness import StageRun, opened
from edgert.stages.sink.zmq import ZmqSink

from .ports import DETECTIONS, found, plan_context


def publishing(**settings: Any) -> Any:
    return opened(ZmqSink, settings, {"detections": DETECTIONS}, plan_context(Path()))


def sink(run: StageRun) -> ZmqSink:
    assert isinstance(run.stage, ZmqSink)
    return run.stage


@pytest.fixture
def address(tmp_path: Path) -> str:
    return f"ipc://{tmp_path}/results.zmq"


Subscribe = Callable[..., zmq.Socket[bytes]]


@pytest.fixture
def subscribe(address: str) -> Iterator[Subscribe]:
    """Make subscribers of the stream's results."""
    with zmq.Context() as context, ExitStack() as open_sockets:

        def make(**options: int) -> zmq.Socket[bytes]:
            subscriber = open_sockets.enter_context(context.socket(zmq.SUB))
            known = {"RCVTIMEO": 10_000, "RECONNECT_IVL": 10, "LINGER": 0}
            for name, value in {**known, **options}.items():
                subscriber.set(getattr(zmq, name), value)
            subscriber.connect(address)
            subscriber.subscribe(b"camera")
            return subscriber

        yield make


def test_results_that_leave_at_once_reach_whoever_was_waited_for(
    address: str, subscribe: Subscribe
) -> None:
    """E9: five frames sent at once at the start, then the end."""
    subscribers = [subscribe() for _ in range(2)]
    with publishing(address=address, wait_for=2) as run:
        for _ in range(5):
            run.feed({"detections": found((1, 2, 3, 4))})
    for subscriber in subscribers:
        received = [subscriber.recv_multipart() for _ in range(5)]
        assert {topic for topic, _ in received} == {b"camera"}
        assert [decode(line).detections[0].label for _, line in received] == ["person"] * 5


def test_who_does_not_come_is_not_waited_for_for_ever(
    address: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    with publishing(address=address, wait_for=1, wait_s=0.05) as run:
        for _ in range(3):
            run.feed({"detections": found()})
        assert sink(run).unheard == 3
    assert "0 of 1 subscriptions after 0.05 s" in caplog.text
    assert caplog.text.count("nobody subscribes") == 1
    assert "3 results were published while nobody subscribed" in caplog.text


def test_a_slow_subscriber_is_counted_and_slows_nobody(address: str, subscribe: Subscribe) -> None:
    slow = subscribe(RCVHWM=1, RCVBUF=4096)
    quick = subscribe()
    with publishing(address=address, wait_for=2, queue=1) as run:
        count = 0
        while sink(run).overrun == 0:  # the sockets' own buffers fill up first
            run.feed({"detections": found(*[(1, 2, 3, 4)] * 10)})
            quick.recv_multipart()
            count += 1
        assert count > 1
    assert slow.recv_multipart()[0] == b"camera"


def test_who_leaves_is_no_longer_counted(address: str, subscribe: Subscribe) -> None:
    subscriber = subscribe()
    with publishing(address=address, wait_for=1) as run:
        run.feed({"detections": found()})
        subscriber.close()
        while sink(run).unheard == 0:
            run.feed({"detections": found()})


def test_the_default_address_is_the_users_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    with publishing() as run:
        path = tmp_path / "edgert" / "results.zmq"
        assert sink(run).address == f"ipc://{path}"
        assert stat.S_IMODE(path.stat().st_mode) & 0o077 == 0
        assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert not path.exists()


def test_a_folder_that_others_can_enter_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    (tmp_path / "edgert").mkdir()
    (tmp_path / "edgert").chmod(0o777)
    with pytest.raises(UserError, match="is not this user's alone"), publishing():
        pass


def test_an_address_in_use_is_refused_not_taken_over(address: str) -> None:
    with (
        publishing(address=address),
        pytest.raises(BusyError, match="another process publishes there"),
        publishing(address=address),
    ):
        pass


def test_a_socket_left_by_a_killed_run_is_no_hindrance(address: str) -> None:
    with socket.socket(socket.AF_UNIX) as left:
        left.bind(address.removeprefix("ipc://"))
    with publishing(address=address) as run:
        run.feed({"detections": found()})


def test_a_port_in_use_is_told() -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        port = other.getsockname()[1]
        other.listen()
        with (
            pytest.raises(UserError, match="cannot be bound"),
            publishing(address=f"tcp://127.0.0.1:{port}"),
        ):
            pass


@pytest.mark.parametrize(
    ("address", "expected"),
    [
        ("tcp://*:5555", "`insecure: true`"),
        ("tcp://0.0.0.0:5555", "`insecure: true`"),
        ("tcp://192.168.1.2:5555", "`insecure: true`"),
        ("tcp://127.0.0.1", "needs a host and a port"),
        ("tcp://127.0.0.1:99999", "is no address"),
        ("ipc://results", "needs an absolute path"),
        ("ipc:///gone/results", "nothing can be made in"),
        ("ipc:///tmp/" + "a" * 120, "longer than 107"),
        ("inproc://a", "neither ipc:// nor tcp://"),
    ],
)
def test_other_addresses_are_refused_with_a_mend(address: str, expected: str) -> None:
    options = read_as(ZmqSink.options, {"address": address})
    with pytest.raises(UserError) as caught:
        ZmqSink.plan(options, {"detections": DETECTIONS}, plan_context(Path()))
    assert expected in str(caught.value)


@pytest.mark.parametrize("address", ["tcp://127.0.0.1:5555", "tcp://[::1]:5555"])
def test_loopback_is_allowed(address: str) -> None:
    options = read_as(ZmqSink.options, {"address": address})
    assert ZmqSink.plan(options, {"detections": DETECTIONS}, plan_context(Path())) == {}


def test_other_machines_are_let_in_on_request() -> None:
    options = read_as(ZmqSink.options, {"address": "tcp://*:5555", "insecure": True})
    assert ZmqSink.plan(options, {"detections": DETECTIONS}, plan_context(Path())) == {}


def test_planning_makes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    ZmqSink.plan(ZmqSink.options(), {"detections": DETECTIONS}, plan_context(Path()))
    assert os.listdir(tmp_path) == []  # noqa: PTH208

"""What the service manager is told, over a real socket."""

from __future__ import annotations

import os
import socket
import time
import uuid
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from edgert.runtime.notify import Notifier, from_environment
from edgert.runtime.run import Progress
from edgert.runtime.sources import SourceState


class Manager:
    """The other end of NOTIFY_SOCKET."""

    def __init__(self, address: str) -> None:
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK)
        self.socket.bind(address.replace("@", "\0", 1))

    def heard(self) -> list[str]:
        lines = []
        while True:
            try:
                lines += self.socket.recv(4096).decode().split("\n")
            except BlockingIOError:
                return lines


@pytest.fixture(params=["file", "abstract"])
def address(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    # Abstract names are the whole machine's: the folder's name alone is another test process's too.
    return str(tmp_path / "notify") if request.param == "file" else f"@edgert-{uuid.uuid4().hex}"


@pytest.fixture
def notifier(address: str) -> Iterator[Notifier]:
    """Without a watchdog."""
    with closing(Notifier(address)) as notifier:
        yield notifier


@pytest.fixture
def manager(address: str) -> Iterator[Manager]:
    manager = Manager(address)
    yield manager
    manager.socket.close()


def progress(phase: str, processed: int = 0, stuck: str = "") -> Progress:
    frames = {"read": processed, "processed": processed, "dropped": 0, "lost": 0}
    return Progress(phase, frames, 0.0, 0.0, 0, stuck)


def test_a_camera_that_is_away_is_named(manager: Manager, notifier: Notifier):
    now = progress("running")
    states = {"front": "offline", "back": "online"}
    sources = {name: SourceState(state, "", "", 0, 0) for name, state in states.items()}
    notifier.tick(replace(now, sources=sources))
    assert manager.heard()[-1].endswith("dropped 0, lost 0, front offline")


def test_ready_comes_once_and_after_the_warm_up(manager: Manager, notifier: Notifier):
    notifier.tick(progress("starting"))
    assert manager.heard() == [
        "EXTEND_TIMEOUT_USEC=60000000",
        "STATUS=starting: stages are opened and warmed up",
    ]
    notifier.tick(progress("running"))
    assert manager.heard() == [
        "READY=1",
        "STATUS=running: 0.0 frames/s, processed 0, dropped 0, lost 0",
    ]
    notifier.tick(progress("running", 5))
    assert manager.heard() == []
    notifier.tick(progress("draining", 7))
    assert manager.heard()[0] == "STOPPING=1"


def test_the_watchdog_is_fed_only_while_the_run_makes_progress(manager: Manager, address: str):
    with closing(Notifier(address, watchdog_s=3e-6)) as notifier:
        notifier.tick(progress("running"))
        notifier.tick(progress("running"))
        assert manager.heard().count("WATCHDOG=1") == 2
        notifier.tick(progress("running", stuck="worker 'a' hangs and cannot be killed"))
        assert manager.heard() == []
        notifier.tick(progress("running"))
        assert manager.heard() == ["WATCHDOG=1"]


def test_a_start_that_is_stuck_gets_no_more_time(manager: Manager, notifier: Notifier):
    notifier.tick(progress("starting", stuck="worker 'a' has been starting for 121 s"))
    assert manager.heard() == ["STATUS=stuck: worker 'a' has been starting for 121 s"]


def test_reloads_of_a_run_are_told_even_when_they_were_over_at_once(
    manager: Manager, notifier: Notifier
):
    running = progress("running")
    notifier.tick(running)
    manager.heard()
    notifier.tick(replace(running, reloads=1))
    (line, time_) = manager.heard()
    assert (line, time_.partition("=")[0]) == ("RELOADING=1", "MONOTONIC_USEC")
    notifier.tick(replace(running, reloads=1, said="nothing has changed"))
    assert manager.heard() == ["READY=1", "STATUS=nothing has changed"]
    notifier.tick(replace(running, reloads=2, said="it has faults"))
    told = manager.heard()
    assert (told[0], told[2:]) == ("RELOADING=1", ["READY=1", "STATUS=it has faults"])
    notifier.tick(replace(running, reloads=2, said="it has faults"))
    assert manager.heard() == []


def test_a_reload_is_told_with_its_time(manager: Manager, notifier: Notifier):
    before_us = time.monotonic_ns() // 1000
    notifier.reloading()
    first, second = manager.heard()
    assert first == "RELOADING=1"
    assert before_us <= int(second.removeprefix("MONOTONIC_USEC=")) <= time.monotonic_ns() // 1000
    notifier.reloaded("the old file runs on:\nit has faults")
    assert manager.heard() == ["READY=1", "STATUS=the old file runs on: it has faults"]


def test_ready_is_told_again_where_nobody_heard_it(notifier: Notifier, address: str):
    notifier.tick(progress("running"))
    late = Manager(address)
    notifier.tick(progress("running"))
    assert "READY=1" in late.heard()
    late.socket.close()


def test_what_is_started_from_here_inherits_nothing():
    environment = {
        "NOTIFY_SOCKET": "/run/x",
        "WATCHDOG_USEC": "9000000",
        "WATCHDOG_PID": "1",
        "A": "b",
    }
    with closing(from_environment(environment)):
        pass
    assert environment == {"A": "b"}
    assert from_environment(environment) is None
    assert from_environment({"NOTIFY_SOCKET": "vsock:2:1"}) is None


@pytest.mark.parametrize(
    ("pid", "fed"), [("", 1), (str(os.getpid()), 1), ("1", 0)], ids=["any", "mine", "another"]
)
def test_the_watchdog_may_be_meant_for_another_process(
    manager: Manager, address: str, pid: str, fed: int
):
    environment = {"NOTIFY_SOCKET": address, "WATCHDOG_USEC": "9000000", "WATCHDOG_PID": pid}
    with closing(from_environment(environment)) as notifier:
        notifier.tick(progress("running"))
    assert manager.heard().count("WATCHDOG=1") == fed

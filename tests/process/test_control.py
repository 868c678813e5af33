"""``edgert ctl`` on runs of real processes, and clients that mean harm."""

from __future__ import annotations

import contextlib
import json
import logging
import pickle
import socket
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
import zmq

from edgert.control.commands import MOST_BYTES, ask
from edgert.control.requests import (
    Done,
    Drain,
    FromRun,
    GetStatus,
    Refused,
    SetLogLevel,
    StatusIs,
    ToRun,
    Underway,
)
from edgert.runtime import waits
from edgert.runtime.folder import running
from edgert.runtime.run import Outcome, Run, RunOptions
from tests.process.runs import REPOSITORY, assert_adds_up, load, started, write_pipeline

pytestmark = pytest.mark.process

ENDLESS = 1 << 40


def chain(folder: Path, count: int = ENDLESS, **step: Any) -> dict[str, dict[str, Any]]:
    return {
        "src": {"kind": "Numbers", "count": count},
        "one": {"kind": "Step", "inputs": {"n": "src.n"}, "wait_ms": 1, **step},
        "out": {"kind": "Write", "inputs": {"n": "one.n"}, "path": str(folder / "out.txt")},
    }


def ctl(*arguments: str) -> tuple[int, str, str]:
    command = [sys.executable, "-m", "edgert", "ctl", *arguments]
    done = subprocess.run(
        command, cwd=REPOSITORY, capture_output=True, text=True, timeout=60, check=False
    )
    return done.returncode, done.stdout, done.stderr


class Controlled:
    """A run in this process, which is stepped while it is asked."""

    def __init__(self, run: Run, name: str) -> None:
        self.run = run
        self.name = name
        run.start()
        self.until(lambda: run.progress().phase == "running")

    def until(self, condition: Any, timeout_s: float = 30) -> None:
        for _ in range(round(timeout_s / 0.01)):
            if condition():
                return
            self.run.step(0.01)
        raise TimeoutError

    def ask(self, *messages: ToRun | bytes) -> list[FromRun]:
        """Send messages as one client does, and return the answers in order."""
        with zmq.Context() as context, context.socket(zmq.DEALER) as client:
            client.setsockopt(zmq.LINGER, 0)
            client.connect(f"ipc://{running()[self.name]}")
            for message in messages:
                client.send(
                    message if isinstance(message, bytes) else msgspec.msgpack.encode(message)
                )
            answers: list[FromRun] = []
            while len(answers) < len(messages):
                self.until(lambda: client.poll(0))
                answer: FromRun = msgspec.msgpack.decode(client.recv(), type=FromRun)
                if not isinstance(answer, Underway):
                    answers.append(answer)
            return answers

    def finish(self) -> Outcome:
        self.until(lambda: not self.run.is_running)
        return self.run.finish()


@contextlib.contextmanager
def controlled(pipeline: Any) -> Iterator[Controlled]:
    run = Run(pipeline.plan, RunOptions(), pipeline.replan)
    try:
        yield Controlled(run, pipeline.plan.name)
    finally:
        if run.is_running:
            run.abandon()


def test_status_names_every_stage_link_and_source(tmp_path: Path) -> None:
    with controlled(load(tmp_path, chain(tmp_path))) as it:
        it.until(lambda: it.run.progress().frames["processed"] > 50)
        (answer,) = it.ask(GetStatus())
        assert isinstance(answer, StatusIs)
        status = answer.status
        it.ask(Drain())
        outcome = it.finish()
    assert status["schema"] == "edgert.status/1"
    assert (status["pipeline"], status["state"]) == (it.name, "running")
    assert status["frames"]["processed"] > 50
    assert status["uptime_s"] > 0
    assert list(status["stages"]) == ["src", "one", "out"]
    one = status["stages"]["one"]
    assert (one["state"], one["restarts"], one["device"]) == ("ready", 0, None)
    assert one["pid"] > 0
    assert one["service_ms"]["p50"] >= 1
    assert set(status["links"]) == {"src.n->one.n", "one.n->out.n"}
    assert status["sources"]["src"]["state"] == "ready"
    assert outcome.exit_code == 0
    assert outcome.summary.frames["lost"] == 0


def test_the_command_line_sees_lists_and_drains_a_run(tmp_path: Path) -> None:
    file = write_pipeline(tmp_path, chain(tmp_path))
    name = json.loads(file.read_text())["name"]
    with started(file) as run:
        run.wait_workers("src", "one", "out")
        socket_file = running()[name]
        assert stat.S_IMODE(socket_file.stat().st_mode) == 0o600
        assert stat.S_IMODE(socket_file.parent.stat().st_mode) == 0o700
        code, out, _ = ctl("--list", "--json")
        assert (code, name in json.loads(out)["pipelines"]) == (0, True)
        code, out, _ = ctl(name, "status", "--json")
        assert (code, json.loads(out)["pipeline"]) == (0, name)
        code, out, _ = ctl(name)
        assert (code, out.splitlines()[2].split()[:3]) == (0, ["STAGE", "STATE", "PID"])
        code, out, _ = ctl(name, "drain")
        assert (code, out) == (0, "the streams end, and everything drains\n")
        code, _, _ = run.wait_end()
        assert code == 0
        assert_adds_up(run.summary())
    code, _, err = ctl(name, "status")
    assert code == 2
    assert err.startswith(f"pipeline '{name}': is not running under this user. ")
    assert "Start it with 'edgert run FILE'" in err


def test_a_log_level_holds_at_once_in_every_worker(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    before = logging.getLogger("edgert").level
    stages = chain(tmp_path, wait_ms=0)
    stages["one"]["kind"] = "Verbose"
    try:
        with controlled(load(tmp_path, stages)) as it:
            it.until(lambda: it.run.progress().frames["processed"] > 20)
            assert "number" not in caplog.text
            (answer,) = it.ask(SetLogLevel("debug"))
            assert answer == Done("log level is debug")
            it.until(lambda: "number" in caplog.text)
            it.ask(Drain())
            it.finish()
    finally:
        logging.getLogger("edgert").setLevel(before)


HOSTILE = {
    "garbage": b"\xff\xfe garbage",
    "nothing": b"",
    "another message": b"\x81\xa4type\xa6reboot",
    "wrong level": b"\x82\xa4type\xa9log-level\xa5level\xa3all",
    "unknown field": b"\x82\xa4type\xa5drain\xa3now\xc3",
    "a pickle": pickle.dumps(GetStatus),
}


HALVES = [b"\xff", b"\xff\0\0\0\0\0\0\0\1\x7f\3\0NULL", b"GET / HTTP/1.1\r\n"]


def test_what_is_no_command_is_refused_and_harmless(tmp_path: Path) -> None:
    with controlled(load(tmp_path, chain(tmp_path))) as it:
        assert ask(running()[it.name], GetStatus(), 0.1) is None  # nobody steps it: given up
        answers = it.ask(*HOSTILE.values())
        assert all(isinstance(answer, Refused) and answer.exit_code == 2 for answer in answers)
        (status,) = it.ask(GetStatus())
        assert isinstance(status, StatusIs)
        assert status.status["state"] == "running"
        it.ask(Drain())
        assert it.finish().exit_code == 0


def test_clients_that_flood_vanish_or_send_halves_harm_nobody(tmp_path: Path) -> None:
    with controlled(load(tmp_path, chain(tmp_path))) as it, contextlib.ExitStack() as open_:
        address = str(running()[it.name])
        raw = [open_.enter_context(socket.socket(socket.AF_UNIX)) for _ in range(200)]
        for number, client in enumerate(raw):
            client.connect(address)
            client.setblocking(False)
            client.send(
                [b"\xff", b"\xff\0\0\0\0\0\0\0\1\x7f\3\0NULL", b"GET / HTTP/1.1\r\n"][number % 3]
            )
        context = open_.enter_context(zmq.Context())
        deaf = open_.enter_context(context.socket(zmq.DEALER))
        deaf.setsockopt(zmq.LINGER, 0)
        deaf.connect(f"ipc://{address}")
        for _ in range(500):  # it takes no answer
            with contextlib.suppress(zmq.Again):
                deaf.send(b"\xa5hello", zmq.NOBLOCK)
        huge = open_.enter_context(context.socket(zmq.DEALER))
        huge.setsockopt(zmq.LINGER, 0)
        huge.connect(f"ipc://{address}")
        huge.send(bytes(MOST_BYTES + 1))
        parts = open_.enter_context(context.socket(zmq.DEALER))
        parts.setsockopt(zmq.LINGER, 0)
        parts.connect(f"ipc://{address}")
        parts.send_multipart([b"drain"] * 100)
        before = it.run.progress().frames["processed"]
        it.until(lambda: it.run.progress().frames["processed"] > before + 100)
        (status,) = it.ask(GetStatus())
        assert isinstance(status, StatusIs)
        it.until(lambda: parts.poll(0))
        assert b"a message of 100 parts" in parts.recv()
        assert not huge.poll(0)
        it.ask(Drain())
        outcome = it.finish()
    assert outcome.exit_code == 0
    assert outcome.summary.frames["lost"] == 0


def test_a_stranger_on_the_workers_socket_is_left_alone(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with controlled(load(tmp_path, chain(tmp_path))) as it:
        folder = running()[it.name].parent
        with zmq.Context() as context, context.socket(zmq.DEALER) as stranger:
            stranger.setsockopt(zmq.LINGER, 0)
            stranger.setsockopt(zmq.IDENTITY, b"\xff\xfe")
            stranger.connect(f"ipc://{folder / 'control.sock'}")
            stranger.send(b"\xc1 what is this")
            it.until(lambda: "is no message" in caplog.text)
            stranger.send(b"\x82\xa4type\xa8finished\xa6worker\xa3one")
        it.ask(Drain())
        assert it.finish().exit_code == 0


def test_who_waits_for_whom_is_told_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(waits.Waits.__init__, "__defaults__", (0.5,))
    stages = chain(tmp_path, hang_at=20)
    with controlled(load(tmp_path, stages, restart={"hang_s": 3600})) as it:
        it.until(lambda: "waits for it" in caplog.text)
        (answer,) = it.ask(GetStatus())
        assert isinstance(answer, StatusIs)
        it.run.stop()
        it.run.stop()
        it.until(lambda: not it.run.is_running)
        it.run.finish()
    assert caplog.text.count("waits for it") == 1
    assert "stage 'one' has been at one frame of 'src.n' for" in answer.status["waits"][0]
    assert answer.status["waits"][0].endswith("'src' waits for it")


def test_a_stage_that_lacks_one_of_two_frames_says_which(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(waits.Waits.__init__, "__defaults__", (0.5,))
    stages: dict[str, dict[str, Any]] = {
        "src": {"kind": "Numbers", "count": ENDLESS},
        "slow": {"kind": "Step", "inputs": {"n": "src.n"}, "hang_at": 3},
        "both": {
            "kind": "Both",
            "inputs": {"a": "src.n", "b": "slow.n"},
            "path": str(tmp_path / "both.txt"),
        },
    }
    with controlled(load(tmp_path, stages, restart={"hang_s": 3600})) as it:
        it.until(lambda: "for a frame of" in caplog.text)
        it.until(lambda: "waits for it" in caplog.text)
        it.run.stop()
        it.run.stop()
        it.until(lambda: not it.run.is_running)
        it.run.finish()
    said = "s for a frame of 'slow.n': it has that of 'src.n' already"
    assert caplog.text.count(said) == 1
    assert caplog.text.count("stage 'slow' has been at one frame of 'src.n' for") == 1

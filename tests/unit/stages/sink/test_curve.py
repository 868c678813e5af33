"""Results that leave the machine: only who has a key gets them, and nobody reads along."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import zmq
from zmq.auth import load_certificate
from zmq.utils.monitor import recv_monitor_message

from edgert.cli.keys import command, make_keys
from edgert.cli.main import exit_code_of
from edgert.errors import UserError
from edgert.pipeline.adapter import read_as
from edgert.results import decode
from edgert.stages.harness import opened
from edgert.stages.sink.zmq import ZmqSink

from .ports import DETECTIONS, found, plan_context


@pytest.fixture
def keys(tmp_path: Path) -> Path:
    (tmp_path / "clients").mkdir()
    make_keys("sink", tmp_path)
    make_keys("friend", tmp_path / "clients")
    make_keys("stranger", tmp_path)
    return tmp_path


def publishing(folder: Path, **curve: Any) -> Any:
    settings = {
        "address": f"ipc://{folder}/results.zmq",
        "curve": {"secret_file": "sink.key_secret", **curve},
    }
    return opened(ZmqSink, settings, {"detections": DETECTIONS}, plan_context(folder))


class Subscriber(NamedTuple):
    socket: zmq.Socket[bytes]
    monitor: zmq.Socket[bytes]

    def is_let_in(self) -> bool:
        assert self.monitor.poll(20_000)
        return recv_monitor_message(self.monitor)["event"] == zmq.EVENT_HANDSHAKE_SUCCEEDED


@contextmanager
def subscriber(folder: Path, own: Path | None) -> Iterator[Subscriber]:
    with zmq.Context() as context, context.socket(zmq.SUB) as socket:
        socket.set(zmq.LINGER, 0)
        if own is not None:
            socket.curve_publickey, secret = load_certificate(own)
            socket.curve_secretkey = secret
            socket.curve_serverkey, _ = load_certificate(folder / "sink.key")
        monitor = socket.get_monitor_socket(
            zmq.EVENT_HANDSHAKE_SUCCEEDED
            | zmq.EVENT_HANDSHAKE_FAILED_AUTH
            | zmq.EVENT_HANDSHAKE_FAILED_PROTOCOL
            | zmq.EVENT_HANDSHAKE_FAILED_NO_DETAIL
            | zmq.EVENT_DISCONNECTED
        )
        socket.connect(f"ipc://{folder}/results.zmq")
        socket.subscribe(b"")
        yield Subscriber(socket, monitor)
        socket.disable_monitor()
        monitor.close()


def test_who_has_a_key_gets_results(keys: Path) -> None:
    own = keys / "clients/friend.key_secret"
    with subscriber(keys, own) as one, publishing(keys, clients="clients") as run:
        assert one.is_let_in()
        while not one.socket.poll(1):
            run.feed({"detections": found((1, 2, 3, 4))})
        assert decode(one.socket.recv_multipart()[1]).detections[0].label == "person"


@pytest.mark.parametrize("own", ["stranger.key_secret", None])
def test_who_has_none_is_kept_out(keys: Path, own: str | None) -> None:
    with (
        subscriber(keys, keys / own if own else None) as one,
        publishing(keys, clients="clients"),
    ):
        assert not one.is_let_in()


def test_without_a_folder_of_clients_the_sinks_public_key_is_what_is_needed(keys: Path) -> None:
    with subscriber(keys, keys / "stranger.key_secret") as one, publishing(keys):
        assert one.is_let_in()
    with subscriber(keys, None) as one, publishing(keys):
        assert not one.is_let_in()


def test_keys_allow_an_address_that_others_reach(keys: Path) -> None:
    options = {"address": "tcp://*:5555", "curve": {"secret_file": "sink.key_secret"}}
    valid = read_as(ZmqSink.options, options)
    assert ZmqSink.plan(valid, {"detections": DETECTIONS}, plan_context(keys)) == {}


@pytest.mark.parametrize(
    ("curve", "said"),
    [
        ({"secret_file": "gone"}, "cannot be read: No such file or directory. Make keys by"),
        ({"secret_file": "sink.key"}, "is a public key. Give the file NAME.key_secret"),
        ({"secret_file": "note"}, "is no key file. Make keys by `edgert keys NAME`"),
        ({"secret_file": "clients"}, "is no key file"),
        ({"secret_file": "open"}, "can be read by others. `chmod 600"),
        ({"secret_file": "sink.key_secret", "clients": "none"}, "has no file *.key: nobody could"),
    ],
)
def test_keys_that_are_none(keys: Path, curve: dict[str, str], said: str) -> None:
    (keys / "note").write_text("my secret")
    (keys / "note").chmod(0o600)
    (keys / "open").write_text((keys / "sink.key_secret").read_text())
    options = read_as(ZmqSink.options, {"curve": curve})
    with pytest.raises(UserError) as caught:
        ZmqSink.plan(options, {"detections": DETECTIONS}, plan_context(keys))
    assert said in str(caught.value)
    assert "my secret" not in str(caught.value)


def test_insecure_is_told(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)
    settings = {"address": f"ipc://{tmp_path}/r.zmq", "insecure": True}
    with opened(ZmqSink, settings, {"detections": DETECTIONS}, plan_context(tmp_path)):
        pass
    assert "insecure: whoever reaches 'ipc://" in caplog.text


def test_made_keys_are_this_users_alone_and_never_written_over(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command.name == "keys"
    made = ["keys", "box", "--folder", str(tmp_path)]
    assert exit_code_of(made) == 0
    secret = tmp_path / "box.key_secret"
    before = secret.read_text()
    assert secret.stat().st_mode & 0o077 == 0
    assert exit_code_of(made) == 2
    assert "is there already" in capsys.readouterr().err
    assert secret.read_text() == before
    assert exit_code_of(["keys", "../box", "--folder", str(tmp_path)]) == 2

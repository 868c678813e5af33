"""Messages survive the wire; the two ends of the channel talk, from several threads too."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
import zmq
from hypothesis import given, settings
from hypothesis import strategies as st

from edgert.control.channel import SupervisorChannel, WorkerChannel
from edgert.control.messages import (
    Change,
    Failed,
    Finished,
    InputFault,
    Leave,
    Left,
    Log,
    LogLevel,
    Ready,
    SaidFault,
    Start,
    Stop,
    ToSupervisor,
    ToWorker,
    Warm,
)
from edgert.transport.polling import poll_of

text = st.text(max_size=20)
faults = st.builds(SaidFault, text, text, text)
to_supervisor = st.one_of(
    st.builds(Ready, text, st.dictionaries(text, st.dictionaries(text, st.integers(0, 9)))),
    st.builds(InputFault, text, st.lists(faults).map(tuple), st.integers(0, 255)),
    st.builds(Failed, text, st.lists(faults).map(tuple), st.integers(0, 255), text, text),
    st.builds(Finished, text),
    st.builds(Warm, text),
    st.builds(Left, text),
    st.builds(
        Log, text, text, st.integers(0, 50), text, st.dictionaries(text, st.integers(0, 9) | text)
    ),
)


@settings(deadline=None)
@given(to_supervisor)
def test_messages_to_the_supervisor(message: ToSupervisor) -> None:
    wire = msgspec.msgpack.encode(message)
    assert msgspec.msgpack.decode(wire, type=ToSupervisor) == message


@pytest.mark.parametrize(
    "message", [Start(), Stop(), Leave(), LogLevel("debug"), Change("one", {"wait_ms": 1})]
)
def test_messages_to_a_worker(message: ToWorker) -> None:
    wire = msgspec.msgpack.encode(message)
    assert msgspec.msgpack.decode(wire, type=ToWorker) == message


Ends = tuple[SupervisorChannel, WorkerChannel]


@pytest.fixture
def ends(tmp_path: Path) -> Iterator[Ends]:
    supervisor = SupervisorChannel(tmp_path / "c")
    worker = WorkerChannel(supervisor.address, "one")
    yield supervisor, worker
    worker.close()
    supervisor.close()


def receive(channel: SupervisorChannel) -> Any:
    assert channel.wait_message(10)
    received = channel.receive_nowait()
    assert received is not None
    identity, message = received
    assert identity == "one"
    return message


def test_both_directions(ends: Ends) -> None:
    supervisor, worker = ends
    worker.send(Ready("one", {"infer": {"device": "CPU"}}))
    assert receive(supervisor) == Ready("one", {"infer": {"device": "CPU"}})
    supervisor.send("nobody", Stop())  # one that is gone gets none
    supervisor.send("one", Start())
    assert worker.wait() == Start()
    assert worker.receive_nowait() is None
    assert supervisor.receive_nowait() is None


def test_the_socket_is_its_users_alone(ends: Ends, tmp_path: Path) -> None:
    assert (tmp_path / "c").stat().st_mode & 0o777 == 0o600


def test_messages_of_other_threads_leave_with_the_owners_next_call(ends: Ends) -> None:
    supervisor, worker = ends
    threads = [
        threading.Thread(target=worker.send, args=(Log("one", "x", 30, str(n)),)) for n in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not supervisor.wait_message(0)
    worker.receive_nowait()
    said = {receive(supervisor).message for _ in threads}
    assert said == {str(n) for n in range(8)}


def test_a_worker_that_polls_misses_no_message(ends: Ends) -> None:
    """Between frames it looks only when the fd was readable: each message must make it so."""
    supervisor, worker = ends
    worker.send(Finished("one"))
    assert receive(supervisor) == Finished("one")  # now it knows the worker
    poll = poll_of((worker.fd,))
    levels = [LogLevel(f"level {n}") for n in range(50)]
    heard: list[Any] = []
    for n, level in enumerate(levels):
        if n % 3 == 0:
            worker.send(Log("one", "x", 30, "whatever is sent may hide that there is something"))
        supervisor.send("one", level)
        if n % 5 == 0:
            supervisor.send("one", Start())
        while level not in heard:
            message = worker.receive_nowait() if worker.may_have else None
            if message is not None:
                heard.append(message)
            elif poll(10_000):
                worker.stir()
            else:
                raise AssertionError(f"{level} was not heard")
    assert [message for message in heard if isinstance(message, LogLevel)] == levels


def test_what_other_threads_say_is_something_to_do(ends: Ends) -> None:
    _, worker = ends
    while worker.may_have:
        worker.receive_nowait()
    thread = threading.Thread(target=worker.send, args=(Log("one", "x", 30, "hear"),))
    thread.start()
    thread.join()
    assert worker.may_have


def test_last_words_leave_with_close(tmp_path: Path) -> None:
    supervisor = SupervisorChannel(tmp_path / "c")
    worker = WorkerChannel(supervisor.address, "one")
    worker.send(Finished("one"))
    worker.close()
    assert receive(supervisor) == Finished("one")
    supervisor.close()


@settings(deadline=None, max_examples=300)
@given(st.one_of(st.binary(max_size=60), to_supervisor.map(msgspec.msgpack.encode)), st.data())
def test_any_bytes_are_a_message_or_told_to_be_none(data: bytes, more: st.DataObject) -> None:
    at = more.draw(st.integers(0, len(data)))
    changed = data[:at] + more.draw(st.binary(max_size=4)) + data[at + 1 :]
    with contextlib.suppress(msgspec.DecodeError):
        assert msgspec.msgpack.decode(changed, type=ToSupervisor)


def test_what_is_no_message_does_not_end_the_supervisor(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    supervisor = SupervisorChannel(tmp_path / "control")
    with zmq.Context() as context, context.socket(zmq.DEALER) as stranger:
        stranger.set(zmq.LINGER, 1000)
        stranger.set(zmq.IDENTITY, b"\xff\xfe")
        stranger.connect(supervisor.address)
        stranger.send(msgspec.msgpack.encode(Finished("a")))
        stranger.send(b"\x93\x01")
        while caplog.text.count("a worker sent what is no message") < 2:
            assert supervisor.wait_message(10)
            assert supervisor.receive_nowait() is None
    worker = WorkerChannel(supervisor.address, "a")
    worker.send(Finished("a"))
    assert supervisor.wait_message(10)
    assert supervisor.receive_nowait() == ("a", Finished("a"))
    worker.close()
    supervisor.close()

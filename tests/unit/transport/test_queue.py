"""Queues of tokens: order, atomicity between two readers, a full pipe."""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgert.errors import StageError
from edgert.transport.queue import LocalQueue, PipeQueue, TokenQueue, make_pipe
from edgert.transport.token import DONE, FRAME, NONE


@pytest.fixture(params=["pipe", "local"])
def queue(request: pytest.FixtureRequest) -> Iterator[TokenQueue]:
    if request.param == "local":
        yield LocalQueue()
        return
    fds = make_pipe()
    yield PipeQueue(*fds)
    for fd in fds:
        os.close(fd)


def test_tokens_come_in_order(queue: TokenQueue) -> None:
    tokens = [(2**63 + n, 2**32 - 1, 65535, DONE, 255) for n in range(3)]
    for token in tokens:
        queue.send(token)
    assert queue.waiting() == 3
    assert queue.receive_nowait() == tokens[0]
    assert queue.receive_all() == tokens[1:]
    assert queue.waiting() == 0
    assert queue.receive_nowait() is None
    assert queue.receive_all() == []


def test_a_full_pipe_makes_the_writer_wait() -> None:
    fds = make_pipe()
    queue = PipeQueue(*fds)
    count = 10_000  # a pipe has room for 4,096
    sender = threading.Thread(
        target=lambda: [queue.send((n, 0, 0, FRAME, NONE)) for n in range(count)]
    )
    sender.start()
    received: list[int] = []
    while len(received) < count:
        received += [token[0] for token in queue.receive_all()]
    sender.join()
    assert received == list(range(count))
    for fd in fds:
        os.close(fd)


def test_each_token_goes_to_one_of_two_readers() -> None:
    """A reader, and a writer that takes back: nobody sees half a token, or one that is gone."""
    fds = make_pipe()
    queue, readers_queue = PipeQueue(*fds), PipeQueue(*fds)  # each thread has its own
    count = 20_000
    received: list[int] = []
    taken_back: list[int] = []
    over = threading.Event()

    def read() -> None:
        while not over.is_set() or readers_queue.waiting():
            token = readers_queue.receive_nowait()
            if token is not None:
                received.append(token[0])

    reader = threading.Thread(target=read)
    reader.start()
    for n in range(count):
        if queue.waiting() >= 2:
            token = queue.receive_nowait()
            if token is not None:
                taken_back.append(token[0])
        queue.send((n, 0, 0, FRAME, NONE))
    over.set()
    reader.join()
    assert sorted(received + taken_back) == list(range(count))
    assert received == sorted(received)
    for fd in fds:
        os.close(fd)


@given(st.binary(max_size=100))
def test_bytes_that_are_no_tokens_are_told(data: bytes) -> None:
    for receive in (PipeQueue.receive_nowait, PipeQueue.receive_all):
        queue = PipeQueue(*make_pipe())
        try:
            os.write(queue.write_fd, data)
            with contextlib.suppress(StageError):
                while receive(queue):
                    pass
            assert queue.waiting() == 0
        finally:
            os.close(queue.read_fd)
            os.close(queue.write_fd)

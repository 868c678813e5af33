"""Queues of tokens: through a pipe between processes, or in plain memory between fused stages."""

from __future__ import annotations

import fcntl
import os
import select
import struct
import termios
from collections import deque
from typing import Protocol

from edgert.errors import StageError
from edgert.transport.polling import poll_of
from edgert.transport.token import TOKEN, TOKEN_BYTES, Token

_INT = struct.Struct("i")


class TokenQueue(Protocol):
    """What carries tokens in order from one writer to its reader.

    Attributes:
        read_fd: What a reader polls; -1 where both ends live in one process.
    """

    read_fd: int

    def send(self, token: Token) -> None:
        """Put a token at the tail."""
        ...

    def receive_nowait(self) -> Token | None:
        """Take the token at the head; None where there is none."""
        ...

    def receive_all(self) -> list[Token]:
        """Take every waiting token: for queues that nobody takes back from."""
        ...

    def waiting(self) -> int:
        """Return how many tokens wait."""
        ...


class PipeQueue:
    """Tokens through a pipe, whose order, wake-ups and memory barriers are the kernel's.

    Both ends are non-blocking: the kernel gives each token to exactly one reader, so that a writer
    may take its oldest token back (``drop-oldest``) while the reader reads. Writes of 16 bytes are
    atomic (PIPE_BUF). Credits bound the tokens on their way far below a pipe's 4,096.

    It is used by one thread at a time; processes and threads that share a pipe have one each.
    """

    def __init__(self, read_fd: int, write_fd: int) -> None:
        self.read_fd = read_fd
        self.write_fd = write_fd
        self._poll = poll_of((read_fd,))

    def send(self, token: Token) -> None:
        """Put a token at the tail; waits only while the pipe is full."""
        while not self.send_nowait(token):
            self._wait_room()

    def send_nowait(self, token: Token) -> bool:
        """Put a token at the tail; whether there was room."""
        try:
            os.write(self.write_fd, TOKEN.pack(*token))
        except BlockingIOError:
            return False
        return True

    def _wait_room(self) -> None:
        poller = select.poll()  # not select(), which knows no fd above 1,023
        poller.register(self.write_fd, select.POLLOUT)
        poller.poll()

    def receive_nowait(self) -> Token | None:
        """Take the token at the head; None where there is none, or the writers are gone."""
        if not self._poll(0):
            return None
        try:  # the writer may take it back in between
            packed = os.read(self.read_fd, TOKEN_BYTES)
        except BlockingIOError:
            return None
        if len(packed) != TOKEN_BYTES:
            _require_nothing(packed)
            return None
        return TOKEN.unpack(packed)

    def receive_all(self) -> list[Token]:
        """Take every waiting token (up to 256) at once: for queues that nobody takes back from."""
        if not self._poll(0):
            return []
        packed = os.read(self.read_fd, TOKEN_BYTES * 256)
        if len(packed) % TOKEN_BYTES:
            _require_nothing(packed)
        return list(TOKEN.iter_unpack(packed))

    def waiting(self) -> int:
        """Return how many tokens wait in the pipe."""
        size = fcntl.ioctl(self.read_fd, termios.FIONREAD, b"\0\0\0\0")
        return int(_INT.unpack(size)[0]) // TOKEN_BYTES


class LocalQueue:
    """Tokens between two stages of one process."""

    read_fd = -1

    def __init__(self) -> None:
        self._tokens: deque[Token] = deque()

    def send(self, token: Token) -> None:
        """Put a token at the tail."""
        self._tokens.append(token)

    def receive_nowait(self) -> Token | None:
        """Take the token at the head; None where there is none."""
        return self._tokens.popleft() if self._tokens else None

    def receive_all(self) -> list[Token]:
        """Take every waiting token."""
        tokens = list(self._tokens)
        self._tokens.clear()
        return tokens

    def waiting(self) -> int:
        """Return how many tokens wait."""
        return len(self._tokens)


def _require_nothing(packed: bytes) -> None:
    """Tell the end of a pipe, which is empty, from what no writer of ours has written.

    Raises:
        StageError: It is not empty.
    """
    if packed:
        raise StageError("a pipe of tokens", f"{len(packed)} bytes in it are no token")


def make_pipe() -> tuple[int, int]:
    """Return a pipe's (read fd, write fd), both non-blocking and closed on exec."""
    return os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)

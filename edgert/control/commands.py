"""The socket on which a run takes commands: ROUTER at the run, DEALER at ``edgert ctl``, over ipc.

    client -> run: one frame, a message of ``ToRun`` in msgpack, at most MOST_BYTES
    run -> client: one frame, a message of ``FromRun``; ``Underway`` any number of times before it

Nobody who connects can hold the run up: what is too long ends its connection, what is not
understood is refused, an answer that nobody takes is dropped.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from pathlib import Path

import msgspec
import zmq

from edgert.control.channel import receive_parts
from edgert.control.messages import SaidFault
from edgert.control.requests import FromRun, Refused, ToRun, Underway
from edgert.errors import EXIT_USER

MOST_BYTES = 1 << 16
_ANSWERS_WAITING = 64  # of one client, then what more there is for it is dropped
_REQUESTS_WAITING = 64  # of one client, then it has to wait
_HANDSHAKE_WITHIN_MS = 2000
_CLOSE_WITHIN_MS = 200

_encode = msgspec.msgpack.Encoder().encode


class CommandServer:
    """The run's end; its socket file is readable and writable by its user alone.

    A ZeroMQ socket's fd is edge-triggered: poll it only after ``receive_nowait`` said None.
    """

    def __init__(self, path: Path) -> None:
        self._context = zmq.Context(io_threads=1)
        self._socket: zmq.Socket[bytes] = self._context.socket(zmq.ROUTER)
        self._decode = msgspec.msgpack.Decoder(ToRun).decode
        for option, value in (
            (zmq.MAXMSGSIZE, MOST_BYTES),
            (zmq.SNDHWM, _ANSWERS_WAITING),
            (zmq.RCVHWM, _REQUESTS_WAITING),
            (zmq.HANDSHAKE_IVL, _HANDSHAKE_WITHIN_MS),
            (zmq.LINGER, _CLOSE_WITHIN_MS),
        ):
            self._socket.setsockopt(option, value)
        self._socket.bind(f"ipc://{path}")
        path.chmod(0o600)
        self.fd: int = self._socket.getsockopt(zmq.FD)  # type: ignore[assignment]

    def receive_nowait(self) -> tuple[bytes, ToRun] | None:
        """Return the next command and whom to answer; what is none is refused here."""
        while (parts := receive_parts(self._socket)) is not None:
            try:
                if len(parts) == 2:
                    return parts[0], self._decode(parts[1])
                why = f"a message of {len(parts) - 1} parts"
            except (msgspec.DecodeError, UnicodeDecodeError) as error:
                why = str(error)
            mend = "Use the edgert that the run was started with"
            fault = SaidFault("command", f"is not one that this run knows ({why})", mend)
            self.answer(parts[0], Refused((fault,), EXIT_USER))
        return None

    def answer(self, client: bytes, message: FromRun) -> None:
        """Answer a client; one that is gone, or takes no answers, gets none."""
        with contextlib.suppress(zmq.ZMQError):
            self._socket.send_multipart([client, _encode(message)], zmq.NOBLOCK)

    def close(self) -> None:
        """Send what waits (for a moment), then close."""
        self._socket.close()
        self._context.term()


def say_nothing(said: str) -> None:
    """Who does not want to know how far something has come."""


def ask(
    path: Path, message: ToRun, timeout_s: float, on_news: Callable[[str], None] = say_nothing
) -> FromRun | None:
    """Send a command to the run that listens there, and return its answer.

    Args:
        path: Its socket.
        message: The command.
        timeout_s: How long to wait for a word of it; as long again after each.
        on_news: Told how far it has come, where it takes a while.

    Returns:
        The answer; None where there is no word within ``timeout_s``.
    """
    with zmq.Context(io_threads=1) as context, context.socket(zmq.DEALER) as socket:
        socket.setsockopt(zmq.LINGER, 0)
        socket.connect(f"ipc://{path}")
        socket.send(_encode(message))
        while socket.poll(round(timeout_s * 1000), zmq.POLLIN):
            answer: FromRun = msgspec.msgpack.decode(socket.recv(), type=FromRun)
            if not isinstance(answer, Underway):
                return answer
            on_news(answer.said)
        return None

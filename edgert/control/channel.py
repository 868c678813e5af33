"""The two ends of the control channel: ROUTER at the supervisor, DEALER at each worker, over ipc.

A ZeroMQ socket's fd is edge-triggered: it is only worth polling after ``receive_nowait`` has said
that there is nothing left.
"""

from __future__ import annotations

import contextlib
import logging
import threading
from collections import deque
from pathlib import Path
from typing import Generic, TypeVar

import msgspec
import zmq

from edgert.control.messages import ToSupervisor, ToWorker

log = logging.getLogger("edgert.supervisor")

_encode = msgspec.msgpack.Encoder().encode
_of_worker = msgspec.msgpack.Decoder(ToWorker)  # before the fork: it reads every type
_Incoming = TypeVar("_Incoming")
_CLOSE_WITHIN_MS = 2000
_MAX_MESSAGE_BYTES = 16 << 20  # far more than a log line or a report has
_SEND_POSTED_EVERY_MS = 200


def receive_parts(socket: zmq.Socket[bytes]) -> list[bytes] | None:
    """Return the parts of the next message; None where there is none."""
    if not socket.getsockopt(zmq.EVENTS) & zmq.POLLIN:  # type: ignore[operator,arg-type]
        return None
    with contextlib.suppress(zmq.Again):
        return socket.recv_multipart(zmq.NOBLOCK)
    return None


class _Channel(Generic[_Incoming]):
    def __init__(self, kind: int, incoming: msgspec.msgpack.Decoder[_Incoming]) -> None:
        self._context = zmq.Context(io_threads=1)
        self._socket: zmq.Socket[bytes] = self._context.socket(kind)
        self._socket.setsockopt(zmq.LINGER, _CLOSE_WITHIN_MS)
        self._socket.setsockopt(zmq.MAXMSGSIZE, _MAX_MESSAGE_BYTES)
        self._decode = incoming.decode
        self.fd: int = self._socket.getsockopt(zmq.FD)  # type: ignore[assignment]

    def wait_message(self, timeout_s: float) -> bool:
        """Wait until a message is there; whether one is."""
        return bool(self._socket.poll(round(timeout_s * 1000), zmq.POLLIN))

    def close(self) -> None:
        """Send what waits (within two seconds), then close."""
        self._socket.close()
        self._context.term()


class WorkerChannel(_Channel[ToWorker]):
    """A worker's end; belongs to the thread that made it, others may only ``send``.

    To ask ZeroMQ costs ten times a look at ``may_have``, which a worker can afford between frames.
    """

    def __init__(self, address: str, identity: str) -> None:
        super().__init__(zmq.DEALER, _of_worker)
        self._owner = threading.get_ident()
        self._posted: deque[bytes] = deque()
        self._is_stirred = True
        self._socket.setsockopt(zmq.IDENTITY, identity.encode())
        self._socket.connect(address)

    def send(self, message: ToSupervisor) -> None:
        """Send a message; one of another thread leaves with the owner's next call."""
        self._posted.append(_encode(message))
        if threading.get_ident() == self._owner:
            self._send_posted()

    @property
    def may_have(self) -> bool:
        """Whether ``receive_nowait`` has anything to do; False only after it has said None."""
        return self._is_stirred or bool(self._posted)

    def stir(self) -> None:
        """Say that ``fd`` was readable, or has not been polled: there may be a message."""
        self._is_stirred = True

    def receive_nowait(self) -> ToWorker | None:
        """Return the next message; None where there is none."""
        self._send_posted()
        parts = receive_parts(self._socket)
        self._is_stirred = parts is not None
        return None if parts is None else self._decode(parts[-1])

    def wait(self) -> ToWorker:
        """Wait for the next message."""
        while not self._socket.poll(_SEND_POSTED_EVERY_MS, zmq.POLLIN):
            self._send_posted()
        return self._decode(self._socket.recv())

    def close(self) -> None:
        """Send what waits (within two seconds), then close."""
        self._send_posted()
        super().close()

    def _send_posted(self) -> None:
        while self._posted:
            self._socket.send(self._posted.popleft())
            self._is_stirred = True  # ZeroMQ may have looked, and ``fd`` says so no more


class SupervisorChannel(_Channel[ToSupervisor]):
    """The supervisor's end; its socket file is readable and writable by its user alone."""

    def __init__(self, path: Path) -> None:
        super().__init__(zmq.ROUTER, msgspec.msgpack.Decoder(ToSupervisor))
        self.address = f"ipc://{path}"
        # At a full queue libzmq stops reading, and what a peer that then goes away has sent is
        # lost: a worker's last words behind a flood of log lines.
        self._socket.setsockopt(zmq.RCVHWM, 0)
        self._socket.bind(self.address)
        path.chmod(0o600)

    def send(self, identity: str, message: ToWorker) -> None:
        """Send a message to one worker; one that is gone gets none."""
        self._socket.send_multipart([identity.encode(), _encode(message)])

    def receive_nowait(self) -> tuple[str, ToSupervisor] | None:
        """Return the next message and who sent it; None where there is none.

        What is no message is passed over and told: a worker whose decoder was taken over by a
        hostile file must not end the supervisor.
        """
        while (parts := receive_parts(self._socket)) is not None:
            try:
                return parts[0].decode(), self._decode(parts[-1])
            except (msgspec.DecodeError, UnicodeDecodeError) as error:
                log.warning("a worker sent what is no message: %s", error)
        return None

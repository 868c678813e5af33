"""The supervisor's side of the zygote: start it, have workers forked, hear of their ends."""

from __future__ import annotations

import array
import contextlib
import os
import socket
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import msgspec

from edgert.errors import WorkerDiedError
from edgert.plan.structs import WorkerOrder
from edgert.processes import stop_signals_wait
from edgert.runtime.zygote import LAST, MAX_FDS, MORE, FromZygote

_START_WITHIN_S = 30
_ONE_THREAD = dict.fromkeys(
    ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "NUMEXPR_NUM_THREADS"), "1"
)


class Spawner:
    """Owns the zygote.

    Args:
        folder: The run's folder, which the zygote removes when everything is gone.
        stdout_fd: Where results go that are for standard output.
        kinds: Of the stages that will run; other ones cost the worker that has them more memory.
    """

    def __init__(self, folder: Path, stdout_fd: int, kinds: Iterable[str]) -> None:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._socket = ours
        self._killed = False
        self._encode = msgspec.msgpack.Encoder().encode
        self._decode = msgspec.msgpack.Decoder(FromZygote).decode
        # The path is the caller's own, so that its stages are found; its __main__ never runs again.
        environment = {**os.environ, **_ONE_THREAD, "PYTHONPATH": os.pathsep.join(sys.path)}
        code = "from edgert.runtime.zygote import main; main()"
        with theirs, stop_signals_wait():
            self._process = subprocess.Popen(
                [
                    *(sys.executable, "-P", "-c", code),
                    *(str(theirs.fileno()), str(folder), *sorted(set(kinds))),
                ],
                pass_fds=(theirs.fileno(),),
                stdin=subprocess.DEVNULL,
                stdout=stdout_fd,
                env=environment,
            )
        self.fd = ours.fileno()
        self.pid = self._process.pid

    def spawn(self, order: WorkerOrder, fds: list[int]) -> None:
        """Ask for a worker; ``Spawned`` and later ``Exited`` will be received."""
        with os.fdopen(os.memfd_create("edgert-order"), "wb", buffering=0) as file:
            file.write(self._encode(order))
            fds = [*fds, file.fileno()]
            while len(fds) > MAX_FDS:
                self._send(MORE, fds[:MAX_FDS])
                fds = fds[MAX_FDS:]
            self._send(LAST, fds)

    def receive(self) -> FromZygote:
        """Return the next message of the zygote; call when ``fd`` is readable.

        Raises:
            WorkerDiedError: The zygote is gone, and with it every worker.
        """
        data = b""
        with contextlib.suppress(ConnectionError):
            data = self._socket.recv(1 << 16)
        if not data:
            code = self._process.wait(_START_WITHIN_S)
            end = "answered no more and was killed" if self._killed else f"ended with code {code}"
            raise WorkerDiedError("zygote", f"{end}, and every worker with it")
        return self._decode(data)

    def kill(self) -> None:
        """End the zygote, which does not say what became of its workers, and them with it."""
        self._killed = True
        self._process.kill()

    def leave_to_parent(self) -> None:
        """Hold the zygote no more: this process is a fork of the one that it is for."""
        self._socket.close()

    def close(self) -> None:
        """Let the zygote end, with whatever still runs under it."""
        self._socket.close()
        try:
            self._process.wait(_START_WITHIN_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def _send(self, which: bytes, fds: list[int]) -> None:
        rights = (socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))
        try:
            self._socket.sendmsg([which], [rights])
        except ConnectionError:
            code = self._process.wait(_START_WITHIN_S)
            raise WorkerDiedError("zygote", f"ended with code {code} before it began") from None

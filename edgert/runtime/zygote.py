"""The zygote: a small single-threaded process from which workers are forked.

It has numpy, OpenCV and the stages of its run imported, so that their pages are shared by all
workers (``sharing.py``), and has never run an operation of them: a fork after OpenCV or a vendor
library has made threads hangs. It outlives
nobody: it dies with the supervisor, the workers die with it, and the run's folder goes last.

    supervisor -> zygote: fds by SCM_RIGHTS, in as many messages as they need; with the LAST of them
                          comes one of a memfd that holds the WorkerOrder, in msgpack: the kernel
                          takes no message as large as the order of some hundred streams
    zygote -> supervisor: Spawned(identity, pid), later Exited(identity, pid, status)
"""

from __future__ import annotations

import array
import importlib
import io
import os
import select
import shutil
import signal
import socket
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import NoReturn

import msgspec

from edgert.errors import EXIT_BUG
from edgert.models.describe import ImageInput
from edgert.options import types_of
from edgert.plan.structs import WorkerOrder
from edgert.processes import (
    die_with_parent,
    hear_of_parents_death,
    ignore_stop_signals,
    name_process,
)
from edgert.runtime import sharing, worker
from edgert.stages.registry import BUILT_IN

MAX_FDS = 250  # of 253 in one message (SCM_MAX_FD)
MORE, LAST = b"more", b"last"
_SUPERVISOR_DIED = signal.SIGUSR1
# What most stages import when they are opened: imported before the fork, its pages are shared, too.
_READ_WHEN_OPENED = (ImageInput,)
_OPENED_WITH = ("edgert.stages.preprocess.convert", "edgert.stages.postprocess.nms")


class Spawned(msgspec.Struct, tag="spawned", frozen=True):
    """A worker was forked; ``identity`` is the order's."""

    identity: str
    pid: int


class Exited(msgspec.Struct, tag="exited", frozen=True):
    """A worker ended; ``status`` as ``os.waitstatus_to_exitcode`` gives it (-9 for a kill)."""

    identity: str
    pid: int
    status: int


FromZygote = Spawned | Exited


class Zygote:
    """Forks workers on request and tells when they end."""

    def __init__(self, supervisor: socket.socket, folder: Path, results_fd: int) -> None:
        self._supervisor = supervisor
        self._folder = folder
        self._results_fd = results_fd
        self._workers: dict[int, str] = {}
        self._fds: list[int] = []
        self._decode = msgspec.msgpack.Decoder(WorkerOrder).decode
        self._encode = msgspec.msgpack.Encoder().encode

    def run(self) -> None:
        """Serve until the supervisor is gone, then leave nothing behind."""
        wake_r, wake_w = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        signal.set_wakeup_fd(wake_w)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.signal(_SUPERVISOR_DIED, signal.SIG_IGN)  # its thread may end before it does
        poller = select.poll()
        poller.register(wake_r, select.POLLIN)
        poller.register(self._supervisor, select.POLLIN)
        while True:
            ready = {fd for fd, _ in poller.poll()}
            if wake_r in ready:
                os.read(wake_r, 4096)
                self._reap()
            if self._supervisor.fileno() in ready and not self._serve():
                break
        self._leave()

    def _serve(self) -> bool:
        """Handle one message; whether the supervisor is still there."""
        fds = array.array("i")
        try:
            data, ancillary, _, _ = self._supervisor.recvmsg(
                len(LAST), socket.CMSG_LEN(MAX_FDS * fds.itemsize)
            )
        except ConnectionError:
            return False
        if not data:
            return False
        for level, kind, content in ancillary:
            if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
                fds.frombytes(content[: len(content) - len(content) % fds.itemsize])
        self._fds.extend(fds)
        if data == LAST:
            self._spawn(self._read_order())
        return True

    def _read_order(self) -> WorkerOrder:
        with os.fdopen(self._fds.pop(), "rb") as file:
            return self._decode(os.pread(file.fileno(), os.fstat(file.fileno()).st_size, 0))

    def _spawn(self, order: WorkerOrder) -> None:
        fds, self._fds = self._fds, []
        zygote_pid = os.getpid()
        pid = os.fork()
        if pid == 0:
            self._become_worker(order, fds, zygote_pid)
        for fd in fds:
            os.close(fd)
        self._workers[pid] = order.identity
        self._tell(Spawned(order.identity, pid))

    def _become_worker(self, order: WorkerOrder, fds: list[int], zygote_pid: int) -> None:
        code = EXIT_BUG
        try:
            die_with_parent(zygote_pid)
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            signal.signal(_SUPERVISOR_DIED, signal.SIG_DFL)
            self._supervisor.close()
            name_process(f"ert:{order.worker.name}")
            code = worker.main(order, fds, self._results_fd)
        finally:
            worker.exit_with(code)

    def _reap(self) -> None:
        while self._workers:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if not pid:
                return
            identity = self._workers.pop(pid)
            self._tell(Exited(identity, pid, os.waitstatus_to_exitcode(status)))

    def _tell(self, message: FromZygote) -> None:
        try:
            self._supervisor.send(self._encode(message))
        except ConnectionError:
            self._leave()

    def _leave(self) -> None:
        for pid in self._workers:
            os.kill(pid, signal.SIGKILL)
        _leave(self._folder)


def _leave(folder: Path) -> NoReturn:
    shutil.rmtree(folder, ignore_errors=True)
    os._exit(0)


def main() -> None:
    """Run with arguments SOCKET_FD FOLDER KIND..., SIGTERM and SIGINT blocked."""
    socket_fd, folder, *kinds = sys.argv[1:]
    ignore_stop_signals()
    # What ends the zygote is the end of its socket, which the loop sees; the death signal (not one
    # that a whole group may get) only covers the imports.
    signal.signal(_SUPERVISOR_DIED, lambda *_: _leave(Path(folder)))
    hear_of_parents_death(_SUPERVISOR_DIED)
    name_process("ert:zygote")
    import_shared_libraries(kinds)
    _filling = sharing.settle()
    supervisor = socket.socket(fileno=int(socket_fd))
    Zygote(supervisor, Path(folder), keep_for_results()).run()


def keep_for_results() -> int:
    """Return a number under which standard output is kept: under its own is standard error now.

    So what a stage or a vendor's library prints comes between no two lines of results.
    """
    try:
        kept = os.dup(1)
        os.dup2(2, 1)
    except OSError:  # one of them is closed: said when there is something to write
        return 1
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(line_buffering=True)  # workers end without emptying its buffer
    return kept


def import_shared_libraries(kinds: Iterable[str]) -> None:
    """Import what the workers need; nothing of it is called before the fork.

    Args:
        kinds: Kinds of stage: a module of somebody else's is left to the workers that need it.
    """
    import cv2  # noqa: F401
    import numpy as np  # noqa: F401

    targets = [BUILT_IN[kind].partition(":") for kind in kinds if kind in BUILT_IN]
    for module, _, name in targets:
        types_of(getattr(importlib.import_module(module), name).options)
    for module in _OPENED_WITH:
        importlib.import_module(module)
    for struct in _READ_WHEN_OPENED:
        msgspec.msgpack.Decoder(struct)  # looks at its types once and for all


if __name__ == "__main__":
    main()

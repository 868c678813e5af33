"""Signals as something to poll: a handler only notes, the loop acts."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from collections.abc import Iterator

from edgert.processes import STOP_SIGNALS


class SignalWatch:
    """Notes SIGTERM and SIGINT on an fd while it is open.

    Only the main thread may handle signals; elsewhere nothing is noted and the caller stops the run
    by other means.
    """

    def __init__(self) -> None:
        self._read_fd, self._write_fd = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        self.fd = self._read_fd
        self.count = 0

    @contextlib.contextmanager
    def watching(self) -> Iterator[SignalWatch]:
        """Handle the signals inside the ``with``, restore what was there after it."""
        if threading.current_thread() is not threading.main_thread():
            yield self
            self._close()
            return
        before = {number: signal.signal(number, _note) for number in STOP_SIGNALS}
        wakeup_before = signal.set_wakeup_fd(self._write_fd, warn_on_full_buffer=False)
        try:
            yield self
        finally:
            signal.set_wakeup_fd(wakeup_before)
            for number, handler in before.items():
                signal.signal(number, handler)
            self._close()

    def hear(self) -> int:
        """Return how many signals have come since the start."""
        with contextlib.suppress(BlockingIOError):
            noted = os.read(self._read_fd, 64)
            self.count += sum(number in STOP_SIGNALS for number in noted)
        return self.count

    def _close(self) -> None:
        os.close(self._read_fd)
        os.close(self._write_fd)


def _note(_signal: int, _frame: object) -> None:
    """The wake-up fd has the number; there is nothing to do here."""

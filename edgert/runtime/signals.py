"""Signals as something to poll: a handler only notes, the loop acts."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
import time
from collections.abc import Iterator

from edgert.processes import STOP_SIGNALS, raise_what_was_swallowed

# `timeout` and `sudo` send a signal to their child and to its group: it gets each of them twice.
SAME_S = 0.5


class SignalWatch:
    """Notes SIGTERM, SIGINT and SIGHUP on an fd while it is open.

    SIGHUP asks a service to reload. On a terminal it says that this is gone: then it stops the run,
    as it always did. Signals that come within half a second are one: the second one kills, and
    must have been meant.

    Only the main thread may handle signals; elsewhere nothing is noted and the caller stops the run
    by other means.
    """

    def __init__(self) -> None:
        self._read_fd, self._write_fd = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        self.fd = self._read_fd
        self.count = 0
        self._counted_s = -SAME_S
        self._reload = False
        self._stops = (*STOP_SIGNALS, signal.SIGHUP) if _has_terminal() else STOP_SIGNALS

    @contextlib.contextmanager
    def watching(self) -> Iterator[SignalWatch]:
        """Handle the signals inside the ``with``, restore what was there after it.

        The fd comes first: a signal whose handler only notes would be lost without.
        """
        if threading.current_thread() is not threading.main_thread():
            yield self
            self._close()
            return
        wakeup_before = signal.set_wakeup_fd(self._write_fd, warn_on_full_buffer=False)
        before = {number: signal.signal(number, _note) for number in _noted()}
        try:
            raise_what_was_swallowed()
            yield self
        finally:
            signal.set_wakeup_fd(wakeup_before)
            for number, handler in before.items():
                signal.signal(number, handler)
            self._close()

    def hear(self) -> int:
        """Return how often a stop was asked for since the start."""
        with contextlib.suppress(BlockingIOError):
            noted = os.read(self._read_fd, 64)
            if any(number in self._stops for number in noted):
                self._count(time.monotonic())
            self._reload |= signal.SIGHUP in noted and signal.SIGHUP not in self._stops
        return self.count

    def _count(self, now_s: float) -> None:
        if now_s - self._counted_s >= SAME_S:
            self._counted_s = now_s
            self.count += 1

    def take_reload(self) -> bool:
        """Return whether a reload was asked for since the last call."""
        self._reload, asked = False, self._reload
        return asked

    def _close(self) -> None:
        os.close(self._read_fd)
        os.close(self._write_fd)


def _noted() -> Iterator[signal.Signals]:
    """Yield what is handled; SIGHUP stays ignored where ``nohup`` had it ignored."""
    yield from STOP_SIGNALS
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
        yield signal.SIGHUP


def _has_terminal() -> bool:
    """Whether this process belongs to a terminal."""
    try:
        os.close(os.open("/dev/tty", os.O_RDONLY | os.O_NOCTTY | os.O_CLOEXEC))
    except OSError:
        return False
    return True


def _note(_signal: int, _frame: object) -> None:
    """The wake-up fd has the number; there is nothing to do here."""

"""What systemd is told of a run: ready, where it stands, that it lives, that it needs more time.

READY=1               every stage is warmed up
STATUS=               a line for ``systemctl status``, every few seconds
WATCHDOG=1            as long as everything required makes progress (``health.py``)
EXTEND_TIMEOUT_USEC=  the same while models are pulled and compiled, before READY
RELOADING=1           and READY=1 when that is over
STOPPING=1            it drains
"""

from __future__ import annotations

import logging
import os
import socket
import time
from collections.abc import MutableMapping

from edgert.runtime.run import Progress

log = logging.getLogger("edgert.notify")

STATUS_EVERY_S = 5.0
_EXTEND_BY_S = 60
_EXTEND_EVERY_S = 10.0
_FEEDS_PER_TIMEOUT = 3
_SEND_WITHIN_S = 1.0
_VARIABLES = ("NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID")


class Notifier:
    """Speaks to the service manager.

    Args:
        address: Of its socket; one that begins with ``@`` is abstract.
        watchdog_s: Seconds within which it wants to hear ``WATCHDOG=1``; 0 for never.
    """

    def __init__(self, address: str, watchdog_s: float = 0.0) -> None:
        self._address = "\0" + address[1:] if address.startswith("@") else address
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.settimeout(_SEND_WITHIN_S)
        self._feed_every_s = watchdog_s / _FEEDS_PER_TIMEOUT
        self._is_ready = False
        self._is_stopping = False
        self._is_reloading = False
        self._reloads = 0
        self._next_s: dict[str, float] = {}
        self._counted: tuple[int, float] = (0, time.monotonic())
        self._phase = ""

    def pulling(self, what: str) -> None:
        """Tell that something is fetched before the run can start."""
        now_s = time.monotonic()
        if self._is_due("EXTEND", _EXTEND_EVERY_S, now_s):
            self._send(f"EXTEND_TIMEOUT_USEC={_EXTEND_BY_S * 1_000_000}", f"STATUS=pulling {what}")

    def tick(self, progress: Progress) -> None:
        """Tell what is due, now that a run stands there."""
        now_s = time.monotonic()
        if progress.phase == "running" and not self._is_ready:
            self._is_ready = self._send("READY=1")
        if progress.phase == "draining" and not self._is_stopping:
            self._is_stopping = self._send("STOPPING=1")
        self._tell_reloads(progress)
        if not progress.stuck:
            self._show_life(now_s)
        self._tell_status(progress, now_s)

    def reloading(self) -> None:
        """Tell that a new file is taken over; ``reloaded`` follows, whatever becomes of it."""
        self._send("RELOADING=1", f"MONOTONIC_USEC={time.monotonic_ns() // 1000}")

    def reloaded(self, status: str) -> None:
        """Tell that the run goes on after a reload, good or refused."""
        self._send("READY=1", f"STATUS={_one_line(status)}")

    def ended(self, status: str) -> None:
        """Tell how it ended; nothing is told after that."""
        self._send("STOPPING=1", f"STATUS={_one_line(status)}")
        self.close()

    def close(self) -> None:
        """Close the socket."""
        self._socket.close()

    def _tell_reloads(self, progress: Progress) -> None:
        """Tell each reload that has begun, also one that is over already, and its end."""
        if progress.reloads > self._reloads:
            self._reloads = progress.reloads
            self._is_reloading = True
            self.reloading()
        if self._is_reloading and progress.said:
            self._is_reloading = False
            self.reloaded(progress.said)

    def _show_life(self, now_s: float) -> None:
        if not self._is_ready:
            if self._is_due("EXTEND", _EXTEND_EVERY_S, now_s):
                self._send(f"EXTEND_TIMEOUT_USEC={_EXTEND_BY_S * 1_000_000}")
        elif self._feed_every_s and self._is_due("WATCHDOG", self._feed_every_s, now_s):
            self._send("WATCHDOG=1")

    def _tell_status(self, progress: Progress, now_s: float) -> None:
        is_new = progress.phase != self._phase
        if not is_new and not self._is_due("STATUS", STATUS_EVERY_S, now_s):
            return
        self._phase = progress.phase
        self._next_s["STATUS"] = now_s + STATUS_EVERY_S
        done, since_s = self._counted
        self._counted = (progress.frames["processed"], now_s)
        fps = (progress.frames["processed"] - done) / max(now_s - since_s, 1e-3)
        self._send(f"STATUS={_status(progress, 0.0 if is_new else fps)}")

    def _is_due(self, what: str, every_s: float, now_s: float) -> bool:
        if now_s < self._next_s.get(what, 0.0):
            return False
        self._next_s[what] = now_s + every_s
        return True

    def _send(self, *lines: str) -> bool:
        """Send one message; whether the manager has it."""
        try:
            self._socket.sendto("\n".join(lines).encode(), self._address)
        except OSError as error:
            log.debug("%s could not be told: %s", lines[0], error)
            return False
        return True


def from_environment(environment: MutableMapping[str, str] = os.environ) -> Notifier | None:
    """Return who tells the service manager that started this process; None where there is none.

    Its variables are taken away: what this process starts has nothing to tell.
    """
    address, usec, pid = (environment.pop(name, "") for name in _VARIABLES)
    if not address:
        return None
    if address[0] not in "/@":
        log.warning("NOTIFY_SOCKET '%s' is of a kind that is not known: nothing is told", address)
        return None
    is_meant = usec.isdecimal() and pid in {"", str(os.getpid())}
    return Notifier(address, int(usec) / 1e6 if is_meant else 0.0)


def _status(progress: Progress, fps: float) -> str:
    if progress.stuck:
        return f"stuck: {progress.stuck}"
    if progress.phase == "starting":
        return "starting: stages are opened and warmed up"
    frames = progress.frames
    again = f", restarts {progress.restarts}" if progress.restarts else ""
    away = "".join(f", {source}" for source in progress.away())
    return (
        f"{progress.phase}: {fps:.1f} frames/s, processed {frames['processed']}, "
        f"dropped {frames['dropped']}, lost {frames['lost']}{again}{away}"
    )


def _one_line(text: str) -> str:
    return " ".join(text.split())

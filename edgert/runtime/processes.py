"""What a process asks of the kernel: to die with its parent, and which signals to ignore."""

from __future__ import annotations

import ctypes
import os
import signal

_PR_SET_PDEATHSIG = 1
_PR_SET_NAME = 15
_libc = ctypes.CDLL(None, use_errno=True)


def die_with_parent(parent_pid: int, signal_number: int = signal.SIGKILL) -> None:
    """Have the kernel signal this process when the thread that started it ends.

    The parent may have ended before the call: then this process ends here.
    """
    _libc.prctl(_PR_SET_PDEATHSIG, signal_number, 0, 0, 0)
    if os.getppid() != parent_pid:
        os._exit(0)


def name_process(name: str) -> None:
    """Set the name that ``ps`` and ``top`` show; the kernel keeps 15 bytes of it."""
    _libc.prctl(_PR_SET_NAME, name.encode()[:15], 0, 0, 0)


def ignore_stop_signals() -> None:
    """Leave SIGTERM and SIGINT to the supervisor: workers stop by message."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    signal.signal(signal.SIGINT, signal.SIG_IGN)

"""What a process asks of the kernel: to die with its parent, and which signals to ignore."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
from collections.abc import Iterator

_PR_SET_PDEATHSIG = 1
_PR_SET_NAME = 15
STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT)
EXIT_INTERRUPTED = 128 + signal.SIGINT  # as a shell says it
EXIT_TERMINATED = 128 + signal.SIGTERM
_libc = ctypes.CDLL(None, use_errno=True)
_seen: list[int] = []  # what the handler of SIGTERM has noted


class TerminatedError(KeyboardInterrupt):
    """SIGTERM has come: whatever was begun is ended on the way out, as after Ctrl-C."""


def hear_sigterm() -> None:
    """Raise ``TerminatedError`` in the main thread when SIGTERM comes, so that nothing is left."""
    _seen.clear()
    signal.signal(signal.SIGTERM, _raise_terminated)


def _raise_terminated(number: int, _frame: object) -> None:
    _seen.append(number)
    raise TerminatedError


def raise_what_was_swallowed() -> None:
    """Raise ``TerminatedError`` again where SIGTERM has come and the process goes on.

    The first one may have been raised inside code that drops whatever is raised in it: a weak
    reference's callback, a comparison within a look-up in C.
    """
    if _seen:
        raise TerminatedError


def hear_of_parents_death(signal_number: int) -> None:
    """Have the kernel signal this process when the thread that started it ends."""
    _libc.prctl(_PR_SET_PDEATHSIG, signal_number, 0, 0, 0)


def die_with_parent(parent_pid: int) -> None:
    """Have the kernel kill this process when the thread that started it ends.

    The parent may have ended before the call: then this process ends here.
    """
    hear_of_parents_death(signal.SIGKILL)
    if os.getppid() != parent_pid:
        os._exit(0)


def name_process(name: str) -> None:
    """Set the name that ``ps`` and ``top`` show; the kernel keeps 15 bytes of it."""
    _libc.prctl(_PR_SET_NAME, name.encode()[:15], 0, 0, 0)


def ignore_stop_signals() -> None:
    """Leave SIGTERM, SIGINT and SIGHUP to the supervisor: workers stop by message."""
    for number in (*STOP_SIGNALS, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, STOP_SIGNALS)


def occupy_standard_numbers() -> None:
    """Open what the caller has closed of descriptors 0 to 2.

    Else a pipe or a segment of a run would get such a number, and with it what libraries print.
    Standard output refuses to be written, so that results are not lost in silence.
    """
    for number, mode in ((0, os.O_RDONLY), (1, os.O_RDONLY), (2, os.O_WRONLY)):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, mode)  # takes the lowest free number: this one
            os.set_inheritable(number, True)  # noqa: FBT003  has no keyword


@contextlib.contextmanager
def stop_signals_wait() -> Iterator[None]:
    """Block SIGTERM and SIGINT in this thread, and in what it starts until that ignores them."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, STOP_SIGNALS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def give_memory_back() -> None:
    """Return to the kernel what was only needed to get ready: reading a model takes far more.

    glibc keeps it otherwise; other C libraries have no such call and need none.
    """
    with contextlib.suppress(AttributeError):
        _libc.malloc_trim(0)

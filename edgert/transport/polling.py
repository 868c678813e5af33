"""One way to ask whether fds are readable: a poll that is made once and called for each frame.

A read of an empty pipe raises, which costs several times a poll that says so: where a worker sleeps
between frames, 20 us for 4.
"""

from __future__ import annotations

import select
from collections.abc import Callable, Iterable

Poll = Callable[[int], list[tuple[int, int]]]
"""Waits so many milliseconds at most; returns the fds that have something, or no writer left."""


def poll_of(fds: Iterable[int]) -> Poll:
    """Return a poll of these fds; one that is negative is left out."""
    poller = select.poll()  # not select(), which knows no fd above 1,023
    for fd in fds:
        if fd >= 0:
            poller.register(fd, select.POLLIN)
    return poller.poll

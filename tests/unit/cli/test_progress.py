"""The status line on a real terminal."""

from __future__ import annotations

import fcntl
import os
import struct
import termios

import pytest

from edgert.cli.progress import StatusLine

TEXT = "a text of 24 characters."


@pytest.mark.parametrize(
    ("columns", "seen"),
    [
        (80, "a text of 24 characters."),
        (24, "a text of 24 charact..."),
        (0, "a text of 24 characters."),
    ],
)
def test_it_never_wraps(columns: int, seen: str) -> None:
    """What wraps is not cleared; 0 columns is a terminal of unknown size."""
    leader, follower = os.openpty()
    fcntl.ioctl(follower, termios.TIOCSWINSZ, struct.pack("4H", 25, columns, 0, 0))
    with open(follower, "w", buffering=1) as stream:  # noqa: PTH123  a descriptor
        StatusLine(stream).show(TEXT)
        written = os.read(leader, 100).decode()
    os.close(leader)
    assert written.removeprefix("\r\x1b[2K") == seen

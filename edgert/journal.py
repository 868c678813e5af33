r"""The system's journal: whether standard error leads to it, and records with fields of their own.

FIELD=value\n                               where the value has no line break
FIELD\n | u64 little-endian length | value\n  where it has
"""

from __future__ import annotations

import logging
import os
import socket
import struct
from collections.abc import Mapping

ADDRESS = "/run/systemd/journal/socket"

_LONGEST_VALUE = 48 << 10  # well below what the kernel takes as one datagram
_LENGTH = struct.Struct("<Q")
_ERROR, _WARNING, _INFO, _DEBUG = 3, 4, 6, 7  # of syslog


def leads_there(fd: int = 2, environment: Mapping[str, str] = os.environ) -> bool:
    """Whether what is written to ``fd`` goes to the journal, as JOURNAL_STREAM has it."""
    device, _, inode = environment.get("JOURNAL_STREAM", "").partition(":")
    if not (device.isdecimal() and inode.isdecimal()):
        return False
    try:
        status = os.fstat(fd)
    except OSError:
        return False
    return (status.st_dev, status.st_ino) == (int(device), int(inode))


def priority(level: int) -> int:
    """Return the priority of syslog for a level of ``logging``."""
    if level >= logging.ERROR:
        return _ERROR
    if level >= logging.WARNING:
        return _WARNING
    return _INFO if level >= logging.INFO else _DEBUG


def marked(text: str, level: int) -> str:
    """Return a text whose lines carry their priority, as the journal reads it from a stream."""
    return "\n".join(f"<{priority(level)}>{line}" for line in text.splitlines())


class Journal:
    """Sends records to the journal; a record that it does not take is counted, never waited for.

    Args:
        address: Of its socket.
    """

    def __init__(self, address: str = ADDRESS) -> None:
        self._address = address
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK)
        self._missed = 0

    def send(self, fields: Mapping[str, str | int]) -> bool:
        """Send one record; whether the journal is there."""
        if self._missed:
            fields = {**fields, "EDGERT_MISSED": self._missed}
        try:
            self._socket.sendto(encode(fields), self._address)
        except BlockingIOError:
            self._missed += 1
            return True
        except OSError:  # it is not there, or being restarted
            return False
        self._missed = 0
        return True

    def close(self) -> None:
        """Close the socket."""
        self._socket.close()


def encode(fields: Mapping[str, str | int]) -> bytes:
    """Return a record as it travels."""
    return b"".join(_encode_field(name, str(value)) for name, value in fields.items())


def _encode_field(name: str, text: str) -> bytes:
    value = text.encode(errors="replace")
    if len(value) > _LONGEST_VALUE:
        value = value[:_LONGEST_VALUE] + f" ... ({len(value)} bytes)".encode()
    if b"\n" in value:
        return name.encode() + b"\n" + _LENGTH.pack(len(value)) + value + b"\n"
    return name.encode() + b"=" + value + b"\n"

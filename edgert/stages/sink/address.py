"""Addresses at which results are published: this user's own unless more is asked for."""

from __future__ import annotations

import ipaddress
import os
from pathlib import Path
from urllib.parse import urlsplit

from edgert.errors import UserError

IPC = "ipc://"
TCP = "tcp://"
MAX_IPC_PATH = 107  # sockaddr_un


def default_address(stage: str) -> str:
    """Return the address of a stage that names none, in a folder that is this user's alone."""
    return f"{IPC}{runtime_folder()}/{stage}.zmq"


def runtime_folder() -> Path:
    """Return the user's folder for sockets."""
    given = os.environ.get("XDG_RUNTIME_DIR")
    return Path(given, "edgert") if given else Path(f"/tmp/edgert-{os.getuid()}")  # noqa: S108


def check_address(address: str, place: str, *, is_guarded: bool) -> None:
    """Check that results may be published at an address.

    Args:
        address: The address.
        place: The stage, for errors.
        is_guarded: Whether it may be one that other machines reach.

    Raises:
        UserError: They may not, or it is no address.
    """
    where = f"{place}, address '{address}'"
    if address.startswith(IPC):
        _check_ipc(address.removeprefix(IPC), where)
    elif address.startswith(TCP):
        _check_tcp(address, where, is_guarded=is_guarded)
    else:
        raise UserError(where, "is neither ipc:// nor tcp://", "give `ipc://PATH`, or leave it out")


def make_folder(path: str, place: str) -> None:
    """Make the folder of the default socket, mode 0700, and check that it is this user's.

    Raises:
        UserError: Somebody else made it.
    """
    folder = Path(path).parent
    if folder != runtime_folder():
        return
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        found = folder.lstat()
    except OSError as error:
        fault = f"the folder '{folder}' cannot be made: {error.strerror}"
        raise UserError(place, fault, "set XDG_RUNTIME_DIR, or give an `address`") from error
    if found.st_uid != os.getuid() or found.st_mode & 0o077:
        raise UserError(
            place, f"the folder '{folder}' is not this user's alone", "set XDG_RUNTIME_DIR"
        )


def _check_ipc(path: str, where: str) -> None:
    if not path.startswith("/"):
        raise UserError(where, "needs an absolute path", "give `ipc:///run/...`")
    if len(path) > MAX_IPC_PATH:
        raise UserError(where, f"is longer than {MAX_IPC_PATH} bytes", "give a shorter path")
    folder = Path(path).parent
    if folder != runtime_folder() and not os.access(folder, os.W_OK | os.X_OK):
        raise UserError(where, f"nothing can be made in '{folder}'", "give another `address`")


def _check_tcp(address: str, where: str, *, is_guarded: bool) -> None:
    try:
        parts = urlsplit(address)
        host, port = parts.hostname or "", parts.port
    except ValueError as error:
        raise UserError(where, f"is no address ({error})", "give `tcp://127.0.0.1:PORT`") from error
    if not host or not port or parts.path:
        raise UserError(where, "needs a host and a port", "give `tcp://127.0.0.1:PORT`")
    if not is_guarded and not _is_loopback(host):
        raise UserError(
            where,
            "can be reached from other machines, unencrypted",
            "give `curve:` (keys are made by `edgert keys NAME`), `tcp://127.0.0.1:PORT`, or "
            "`insecure: true`",
        )


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False

"""The run's folder and its name: one run of a name at a time, nothing left of either.

The name is an abstract socket, which the kernel frees with its holder, however that ends. The
folder (0700, for the control socket) is removed by the zygote when the supervisor is gone; one that
was left when both were killed is swept by the next run, of whatever name. Who is alive is told by a
lock on the folder, which the kernel frees as well, and which is seen from every namespace: a pid or
an abstract name is not. The folder has its holder's pid in its name: a zygote that is late to
remove it must not remove that of the next run.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import re
import shutil
import socket
import struct
import tempfile
import time
from pathlib import Path

from edgert.errors import BusyError, ResourceError

_FOLDER = re.compile(r"\.?[a-z0-9-]+\.\d+")  # name.pid, with a dot until it is locked
_SWEPT_WITHIN_S = 2.0  # an empty folder, by whoever has locked it
_PEER = struct.Struct("3i")  # struct ucred: pid, uid, gid
_CONTROL_SOCKET = "control.sock"
_COMMAND_SOCKET = "ctl.sock"
_LONGEST_SOCKET_PATH = 107  # of sun_path, its last byte a zero
# Where systemd/edgert@.service has its runs (XDG_RUNTIME_DIR=%t/edgert): root may look there, too.
_OF_SERVICES = Path("/run/edgert/edgert")


class RunFolder:
    """Holds the name of a run and the folder for its sockets."""

    def __init__(self, name: str) -> None:
        """Take the name and make the folder.

        Raises:
            BusyError: A run of that name is going on.
            ResourceError: The folder cannot be made, or belongs to somebody else.
        """
        self._name = _take_name(name)
        try:
            base = runtime_dir()
            _sweep(base)
            self.path, self._lock = _make_folder(base, name)
        except BaseException:
            self._name.close()
            raise

    @property
    def control_socket(self) -> Path:
        """Where the supervisor listens."""
        return self.path / _CONTROL_SOCKET

    @property
    def command_socket(self) -> Path:
        """Where the run takes commands."""
        return self.path / _COMMAND_SOCKET

    def release(self) -> None:
        """Remove the folder and give the name up."""
        shutil.rmtree(self.path, ignore_errors=True)
        self.leave_to_parent()

    def leave_to_parent(self) -> None:
        """Hold neither any more, and leave the folder to whoever else holds it."""
        os.close(self._lock)
        self._name.close()


def runtime_dir() -> Path:
    """Return the user's folder for sockets, made 0700 where it is not there.

    Raises:
        ResourceError: It cannot be made, or belongs to somebody else.
    """
    given = os.environ.get("XDG_RUNTIME_DIR")
    base = Path(given) / "edgert" if given and os.access(given, os.W_OK) else None
    path = base or Path(tempfile.gettempdir()) / f"edgert-{os.getuid()}"
    place = f"folder '{path}'"
    try:
        path.mkdir(mode=0o700, exist_ok=True)
        status = path.lstat()
    except OSError as error:
        raise ResourceError(
            place, f"cannot be made ({error.strerror})", "Set XDG_RUNTIME_DIR to a writable folder"
        ) from error
    if status.st_uid != os.getuid() or status.st_mode & 0o077 or path.is_symlink():
        raise ResourceError(
            place,
            "is not this user's alone",
            "Remove it, or set XDG_RUNTIME_DIR to a folder that only you can enter",
        )
    return path


def running() -> dict[str, Path]:
    """Return the command socket of each run of this user, by the name of its pipeline.

    Root sees those of services, too; a run of its own of the same name comes first.

    Raises:
        ResourceError: The user's folder for sockets belongs to somebody else.
    """
    held = _held_addresses()
    own = _running_in(runtime_dir(), os.getuid(), held)
    if os.getuid() or not _OF_SERVICES.is_dir() or _OF_SERVICES.is_symlink():
        return own
    return _running_in(_OF_SERVICES, _OF_SERVICES.stat().st_uid, held) | own


def _running_in(base: Path, uid: int, held: set[str]) -> dict[str, Path]:
    found = {}
    for folder in sorted(base.glob("*.*")):
        name, _, pid = folder.name.partition(".")
        if _address(name, uid) in held and Path(f"/proc/{pid}").exists():
            found[name] = folder / _COMMAND_SOCKET
    return found


def _held_addresses() -> set[str]:
    """Return the abstract addresses that are held: looking at one must not take or knock at it."""
    lines = Path("/proc/net/unix").read_text(errors="replace").splitlines()
    paths = (line.rpartition(" ")[2] for line in lines)
    return {"\0" + path[1:] for path in paths if path.startswith("@edgert.")}


def _address(name: str, uid: int) -> str:
    return f"\0edgert.{uid}.{name}"


def _sweep(base: Path) -> None:
    """Remove the folders of runs that are no more."""
    for left in base.iterdir():
        with contextlib.suppress(OSError):  # locked, a link, or swept by another run just now
            if _FOLDER.fullmatch(left.name):
                lock = _lock(left)
                shutil.rmtree(left, ignore_errors=True)
                os.close(lock)


def _lock(folder: Path) -> int:
    """Return the fd that holds a folder's lock.

    Raises:
        OSError: A living process has it (BlockingIOError), it is gone (FileNotFoundError), or it is
            no folder.
    """
    lock = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if not os.path.samestat(os.fstat(lock), folder.lstat()):
            # Another one has its name since it was opened.
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(folder))
    except OSError:
        os.close(lock)
        raise
    return lock


def _make_locked(path: Path) -> int:
    """Make a folder that is locked from the moment on in which it has its name."""
    unlocked = path.with_name(f".{path.name}")
    lock = _make_and_lock(unlocked)
    try:
        unlocked.rename(path)
    except OSError:
        os.close(lock)
        raise
    return lock


def _make_and_lock(path: Path) -> int:
    """Make a folder and lock it; until it is locked, other runs may sweep it."""
    deadline_s = time.monotonic() + _SWEPT_WITHIN_S
    while True:
        path.mkdir(mode=0o700, exist_ok=True)
        try:
            return _lock(path)
        except (BlockingIOError, FileNotFoundError):
            if time.monotonic() > deadline_s:
                raise
            time.sleep(0.001)


def _make_folder(base: Path, name: str) -> tuple[Path, int]:
    """Return the folder and the fd that holds its lock."""
    path = base / f"{name}.{os.getpid()}"
    if len(os.fsencode(path / _CONTROL_SOCKET)) > _LONGEST_SOCKET_PATH:
        raise ResourceError(
            f"folder '{path}'",
            "is too long a path for a socket",
            "Set XDG_RUNTIME_DIR to a shorter one",
        )
    try:
        return path, _make_locked(path)
    except OSError as error:
        raise ResourceError(
            f"folder '{path}'",
            f"cannot be made ({error.strerror})",
            "Set XDG_RUNTIME_DIR to a writable folder",
        ) from error


def _take_name(name: str) -> socket.socket:
    lock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    address = _address(name, os.getuid())
    try:
        lock.bind(address)
    except OSError:
        lock.close()
        raise BusyError(
            f"pipeline '{name}'",
            f"is running already (process {_holder(name, address)})",
            "Stop that run, or give this one another `name` in its file",
        ) from None
    lock.listen(8)
    return lock


def _holder(name: str, address: str) -> str:
    """Return the pid of the run that holds a name, by its folder; else by asking the socket.

    It never takes a connection up, so that it can be asked a few times alone.
    """
    pids = [folder.name.partition(".")[2] for folder in runtime_dir().glob(f"{name}.*")]
    alive = [pid for pid in pids if Path(f"/proc/{pid}").exists()]
    return alive[0] if len(alive) == 1 else _pid_behind(address)


def _pid_behind(address: str) -> str:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_NONBLOCK) as peer:
        try:
            peer.connect(address)
        except OSError:
            return "unknown"
        pid, _, _ = _PEER.unpack(peer.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _PEER.size))
        return str(pid)

"""The user's cache of pulled files.

    ROOT/models/SHA256/FILENAME    files, named by their checksum
    ROOT/stamps/                   remembered checksums (digests.py)
    ROOT/signatures/               remembered inputs and outputs (reader.py)
    ROOT/compiled/SHA256/          what runtimes compiled (compiled.py)
    ROOT/locks/SHA256              held while one process pulls; others wait
    ROOT/tmp/                      pulls under way; each folder is locked by its owner

ROOT is EDGERT_CACHE, or XDG_CACHE_HOME/edgert, or ~/.cache/edgert.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from edgert.errors import ModelError, ResourceError
from edgert.models.atomic import move_into_place
from edgert.models.digests import Digests, hash_file


def cache_root(environment: Mapping[str, str] = os.environ) -> Path:
    """Return the folder of the user's cache.

    Raises:
        ResourceError: There is no home directory to put it in.
    """
    if environment.get("EDGERT_CACHE"):
        return Path(environment["EDGERT_CACHE"])
    # The XDG rule: a relative path in the variable is to be ignored.
    base = Path(environment.get("XDG_CACHE_HOME", ""))
    try:
        return (base if base.is_absolute() else Path("~/.cache").expanduser()) / "edgert"
    except RuntimeError:
        fault = "this user has no home directory"
        raise ResourceError("cache", fault, "Name a folder in EDGERT_CACHE") from None


class Cache:
    """Files by checksum: what comes out has been checked, what goes in appears whole."""

    def __init__(self, root: Path | None = None) -> None:
        self.root = root or cache_root()
        self.digests = Digests(self.root / "stamps")

    def path(self, sha256: str, filename: str) -> Path:
        """Return where a file is, or would be."""
        return self.root / "models" / sha256 / filename

    def find(self, sha256: str, filename: str) -> Path | None:
        """Return a file that is there and whole; None where it has to be pulled (anew)."""
        path = self.path(sha256, filename)
        try:
            return path if self.digests.sha256(path) == sha256 else None
        except FileNotFoundError:
            return None
        except OSError as error:
            fault = f"cannot read '{path}': {error.strerror}"
            mend = "Mend that, or name another folder in EDGERT_CACHE"
            raise ResourceError("cache", fault, mend) from None

    def put(self, file: Path, sha256: str, filename: str, place: str) -> Path:
        """Take in a finished file from ``workspace()``.

        Raises:
            ModelError: Its checksum is another.
            ResourceError: The cache cannot be written.
        """
        check_sha256(file, sha256, place)
        path = self.path(sha256, filename)
        with self.writing():
            move_into_place(file, path)
        self.digests.sha256(path)
        return path

    @contextmanager
    def pulling(self, sha256: str) -> Iterator[None]:
        """Keep others from pulling the same file; they wait and then find it here."""
        with self.writing():
            fd = _open_lock(self.root / "locks" / sha256)
            try:
                fcntl.flock(fd, fcntl.LOCK_EX)
            except OSError:
                os.close(fd)
                raise
        try:
            yield
        finally:
            os.close(fd)

    @contextmanager
    def workspace(self) -> Iterator[Path]:
        """Give a folder on the cache's file system that is gone afterwards, even after a kill."""
        with self.writing():
            folder, fd = self._make_workspace()
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)
            os.close(fd)

    def _make_workspace(self) -> tuple[Path, int]:
        base = self.root / "tmp"
        # Held so that nobody takes a folder for abandoned between mkdtemp and its lock.
        gate = _open_lock(self.root / "locks" / "tmp")
        try:
            fcntl.flock(gate, fcntl.LOCK_EX)
            base.mkdir(parents=True, exist_ok=True)
            for abandoned in base.iterdir():
                _remove_if_unlocked(abandoned)
            folder = Path(tempfile.mkdtemp(dir=base))
            fd = os.open(folder, os.O_RDONLY)
            fcntl.flock(fd, fcntl.LOCK_EX)
        finally:
            os.close(gate)
        return folder, fd

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Turn what the file system says while the cache is written into an error of ours."""
        try:
            yield
        except OSError as error:
            raise ResourceError(
                "cache",
                f"cannot write to '{self.root}': {error.strerror}",
                "Make room or let it be written, or name another folder in EDGERT_CACHE",
            ) from None


def check_sha256(file: Path, expected: str, place: str) -> None:
    """Compare a file's checksum.

    Raises:
        ModelError: It is another.
    """
    found = hash_file(file)
    if found != expected:
        raise ModelError(
            place,
            f"wrong checksum: expected sha256 {expected}, found {found}",
            "The file is damaged, or another one: fetch it again",
        )


def _open_lock(path: Path) -> int:
    path.parent.mkdir(parents=True, exist_ok=True)
    return os.open(path, os.O_CREAT | os.O_RDWR, 0o600)


def _remove_if_unlocked(folder: Path) -> None:
    fd = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return  # its owner is alive
    else:
        shutil.rmtree(folder, ignore_errors=True)
    finally:
        os.close(fd)

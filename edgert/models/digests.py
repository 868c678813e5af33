"""SHA-256 of files, computed once and remembered for as long as a file stays as it was."""

from __future__ import annotations

import hashlib
import logging
import os
from pathlib import Path

import msgspec

from edgert.models.atomic import write_atomically

log = logging.getLogger(__name__)


class Stamp(msgspec.Struct, frozen=True):
    """What a file looked like when it was hashed. ctime_ns cannot be set back by hand."""

    size: int
    mtime_ns: int
    ctime_ns: int
    inode: int
    sha256: str = ""


class Digests:
    """Remembers the checksums of files in a folder of small stamps.

    A start must not hash hundreds of megabytes; a file that was changed must be noticed.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def sha256(self, path: Path) -> str:
        """Return the checksum of a file, hashing it only if it is new or has changed.

        Raises:
            OSError: It cannot be read.
        """
        path = path.resolve()
        stamp_path = self.folder / f"{hashlib.sha256(os.fsencode(path)).hexdigest()}.json"
        known, now = _read(stamp_path), _look(path)
        if known and known == msgspec.structs.replace(now, sha256=known.sha256):
            return known.sha256
        found = msgspec.structs.replace(now, sha256=hash_file(path))
        if _look(path) == now:
            self._remember(stamp_path, found)
        return found.sha256

    def _remember(self, stamp_path: Path, stamp: Stamp) -> None:
        try:
            write_atomically(stamp_path, msgspec.json.encode(stamp))
        except OSError as error:
            # A cache that somebody laid out read-only works, only more slowly.
            log.debug("cannot remember a checksum: %s", error)


def hash_file(path: Path) -> str:
    """Return the SHA-256 of a file, lower-case hex."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _look(path: Path) -> Stamp:
    found = path.stat()
    return Stamp(found.st_size, found.st_mtime_ns, found.st_ctime_ns, found.st_ino)


def _read(stamp_path: Path) -> Stamp | None:
    try:
        return msgspec.json.decode(stamp_path.read_bytes(), type=Stamp)
    except (OSError, msgspec.DecodeError):
        return None

"""Take one file out of an archive that is not trusted.

No name from inside an archive ever becomes a path here: the caller says where the one file goes.
So nothing can be written elsewhere, whatever the members are called. What is read is bounded by
the bytes that really come out, not by what the archive says of itself.
"""

from __future__ import annotations

import stat
import tarfile
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from edgert.errors import ModelError

CHUNK_BYTES = 1 << 20
# What may come out of a tar before the file that is wanted: it has no index, all is unpacked.
TAR_LIMIT_BYTES = 8 << 30
COMPRESSIONS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
SPECIAL = ("", ".", "..")


def extract_member(archive: Path, member: str, into: Path, limit_bytes: int, place: str) -> None:
    """Write one member of a zip or tar archive to ``into``.

    Args:
        archive: The archive.
        member: The member's exact name.
        into: The file to write; it must not exist.
        limit_bytes: More than this is refused.
        place: With which an error begins.

    Raises:
        ModelError: The archive is damaged, has no such regular file, or it is too large.
    """
    if any(part in SPECIAL for part in member.split("/")):
        raise ModelError(place, f"'{member}' is not a plain path inside an archive")
    try:
        with _open_member(archive, member, place) as source, into.open("xb") as target:
            _copy(source, target, limit_bytes, f"{place}, '{member}'")
    except (zipfile.BadZipFile, tarfile.TarError, zlib.error, EOFError) as error:
        raise ModelError(place, f"the archive is damaged: {error}", "Fetch it again") from None


@contextmanager
def _open_member(archive: Path, member: str, place: str) -> Iterator[IO[bytes]]:
    opener = _open_in_zip if zipfile.is_zipfile(archive) else _open_in_tar
    with opener(archive, member, place) as source:
        yield source


@contextmanager
def _open_in_zip(archive: Path, member: str, place: str) -> Iterator[IO[bytes]]:
    with zipfile.ZipFile(archive) as opened:
        found = next((info for info in opened.infolist() if info.filename == member), None)
        if found is None:
            raise _missing(member, place)
        mode = found.external_attr >> 16
        if stat.S_IFMT(mode) not in (0, stat.S_IFREG):
            raise ModelError(place, f"'{member}' in the archive is not a regular file")
        if found.flag_bits & 1 or found.compress_type not in COMPRESSIONS:
            raise ModelError(place, f"'{member}' is encrypted or compressed in an unknown way")
        with opened.open(found) as source:
            yield source


@contextmanager
def _open_in_tar(archive: Path, member: str, place: str) -> Iterator[IO[bytes]]:
    # "r|*" reads once from front to back: no member is unpacked to be skipped twice.
    with tarfile.open(archive, "r|*") as opened:
        unpacked = 0
        for info in opened:
            if info.name == member:
                break
            unpacked += info.size
            if unpacked > TAR_LIMIT_BYTES:
                raise ModelError(place, "the archive unpacks to more than 8 GiB")
        else:
            raise _missing(member, place)
        source = opened.extractfile(info) if info.isreg() else None
        if source is None:
            raise ModelError(place, f"'{member}' in the archive is not a regular file")
        yield source


def _missing(member: str, place: str) -> ModelError:
    return ModelError(place, f"there is no '{member}' in the archive")


def _copy(source: IO[bytes], target: IO[bytes], limit_bytes: int, place: str) -> None:
    written = 0
    while chunk := source.read(min(CHUNK_BYTES, limit_bytes - written + 1)):
        written += len(chunk)
        if written > limit_bytes:
            raise ModelError(place, f"is larger than the {limit_bytes} bytes it should have")
        target.write(chunk)

"""Files that are kept for whoever maintains a stage: whole ones, and the newest few alone."""

from __future__ import annotations

import errno
from pathlib import Path

from edgert.models.atomic import write_atomically

FILES_AT_MOST = 16
BYTES_AT_MOST = 64 << 20
_ENDING = ".slot"


def keep(folder: Path, name: str, data: bytes) -> Path:
    """Write a file, and remove the oldest of its folder for which there is no room beside it.

    Raises:
        OSError: It is too large to be kept, or cannot be written; nothing of it is left.
    """
    if len(data) > BYTES_AT_MOST:
        raise OSError(errno.EFBIG, f"it is larger than all that is kept ({BYTES_AT_MOST} bytes)")
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    _make_room(folder, len(data))
    file = folder / f"{name}{_ENDING}"
    write_atomically(file, data)
    return file


def _make_room(folder: Path, nbytes: int) -> None:
    files = sorted(folder.glob(f"*{_ENDING}"), key=lambda file: file.stat().st_mtime_ns)
    sizes = [file.stat().st_size for file in files]
    while files and (len(files) >= FILES_AT_MOST or sum(sizes) + nbytes > BYTES_AT_MOST):
        files.pop(0).unlink()
        sizes.pop(0)

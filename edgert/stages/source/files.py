"""Which files a path means: a directory of images, a pattern, or one file."""

from __future__ import annotations

import glob
import re
from pathlib import Path

from edgert.errors import MediaError

SUFFIXES = frozenset((".jpg", ".jpeg", ".png", ".bmp", ".tif", ".tiff", ".webp"))


def find_images(path: Path, place: str, *, recursive: bool) -> list[Path]:
    """Return the image files that a path means, ``img2`` before ``img10``.

    Of a directory those with the suffix of an image; of a pattern, and of one file, whatever it is.

    Raises:
        MediaError: There is nothing there.
    """
    refuse_hidden(path, place)
    if path.is_dir():
        found = [file for file in _below(path, recursive=recursive) if file.is_file()]
        mend = f"put images into it ({', '.join(sorted(SUFFIXES))})"
        if not found and not recursive:
            mend += ", or set `recursive: true` for those in folders below"
        return _some(found, f"{place}, directory '{path}'", "holds no images", mend)
    if path.is_file():
        return [path]
    if path.exists():  # a FIFO would be waited for until somebody writes to it
        raise MediaError(f"{place}, '{path}'", "is not a regular file", "give an image")
    if glob.has_magic(str(path)):
        matches = [Path(one) for one in glob.glob(str(path), recursive=recursive)]  # noqa: PTH207
        found = [file for file in matches if file.is_file()]
        return _some(found, f"{place}, pattern '{path}'", "matches no file", "check `uri`")
    raise MediaError(
        f"{place}, file '{path}'", "no such file or directory", "check `uri` (or --input)"
    )


def refuse_hidden(path: Path, place: str) -> None:
    """Refuse a path that cannot be looked at: too long, or in a folder closed to this user.

    Raises:
        MediaError: It is one.
    """
    try:
        path.exists()
    except OSError as error:
        fault = (error.strerror or "cannot be read").lower()
        raise MediaError(f"{place}, '{path}'", fault, "check `uri` (or --input)") from error


def _below(folder: Path, *, recursive: bool) -> list[Path]:
    files = folder.rglob("*") if recursive else folder.iterdir()
    return list(filter(is_image, files))


def _some(found: list[Path], place: str, fault: str, mend: str) -> list[Path]:
    if not found:
        raise MediaError(place, fault, mend)
    return sorted(found, key=natural)


def is_image(path: Path) -> bool:
    """Whether a file has the suffix of an image."""
    return path.suffix.lower() in SUFFIXES


def natural(path: Path) -> tuple[list[tuple[int, int, str]], str]:
    """Return what files are sorted by: ``img2`` before ``img10``."""
    parts = re.split(r"(\d+)", str(path).lower())
    keys = [(1, int(part), "") if part.isdecimal() else (0, 0, part) for part in parts]
    return keys, str(path)

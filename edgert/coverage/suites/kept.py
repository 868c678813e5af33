"""A suite on disk: models, values and an index in a folder that is there whole or not at all."""

from __future__ import annotations

import contextlib
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

import msgspec

from edgert.coverage.suites.item import Item

_INDEX = "index.json"


def index_of(target: Path) -> Path:
    """Return the path of a folder's index; it is there when the folder is."""
    return target / _INDEX


def write_whole(target: Path, fill: Callable[[Path], list[Item]]) -> None:
    """Let a folder be filled beside the target, with its index, and move it there.

    Args:
        target: The folder.
        fill: Writes the files into the folder it is given; its items name them in ``target``.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    made = Path(tempfile.mkdtemp(prefix=f".{target.name}-", dir=target.parent))
    try:
        index_of(made).write_bytes(msgspec.json.encode(fill(made)))
        with contextlib.suppress(OSError):  # another run was first: its files are the same
            made.rename(target)
    finally:
        shutil.rmtree(made, ignore_errors=True)


def read_index(path: str) -> list[Item]:
    """Return the items of an index."""
    return msgspec.json.decode(Path(path).read_bytes(), type=list[Item])

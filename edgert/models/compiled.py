"""Where runtimes keep compiled models: one folder a model, bounded, and never needed.

    ROOT/compiled/SHA256/...    what a runtime wrote for that model; it adds device, version and
                                options to the names itself

Whatever is wrong with it (full, read-only, no home, damaged files) costs a compilation, not a run.
"""

from __future__ import annotations

import logging
import os
import shutil
from pathlib import Path

from edgert.errors import ResourceError
from edgert.models.cache import cache_root

MAX_BYTES = 2 << 30

log = logging.getLogger("edgert.models.compiled")


def compiled_folder(sha256: str, root: Path | None = None, max_bytes: int = MAX_BYTES) -> str:
    """Return the folder for a model's compiled forms, made where it is not there.

    The models that were used the longest time ago go first, until all fit into ``max_bytes``.

    Args:
        sha256: Checksum of the model's file.
        root: Folder of the cache; the user's where it is not given.
        max_bytes: Bytes that all models may take.

    Returns:
        The folder; empty where nothing can be kept.
    """
    try:
        base = (root or cache_root()) / "compiled"
        folder = base / sha256
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        os.utime(folder)
        _make_room(base, folder, max_bytes)
        return str(folder) if os.access(folder, os.W_OK) else ""
    except (OSError, ResourceError) as error:
        log.debug("compiled models are not kept: %s", error)
        return ""


def forget(folder: str) -> None:
    """Remove what was kept of a model."""
    shutil.rmtree(folder, ignore_errors=True)


def _make_room(base: Path, used_now: Path, max_bytes: int) -> None:
    folders = sorted(base.iterdir(), key=lambda folder: folder.stat().st_mtime, reverse=True)
    total = 0
    for folder in folders:
        total += sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())
        if total > max_bytes and folder != used_now:
            shutil.rmtree(folder, ignore_errors=True)

"""Keeps a model as OpenVINO has read it, where reading takes long.

A TensorFlow graph of 18 MB takes a second to read, its intermediate form a tenth of that. It lies
beside the compiled forms in the folder of that model; whatever is wrong with it, the model is read.
"""

from __future__ import annotations

import hashlib
import logging
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from edgert.backends.openvino_runtime import READ_ERRORS, ov, reason

log = logging.getLogger("edgert.backends.openvino")


def read_or_keep(
    core: Any, path: str, folder: str, shapes: Mapping[str, list[int]], read: Callable[[], Any]
) -> Any:
    """Return a model with its shapes fixed: as it was kept, else as ``read`` reads it.

    Args:
        core: OpenVINO's core.
        path: The model's file, or the folder of a SavedModel.
        folder: Where forms of this model are kept, and of no other.
        shapes: Sizes that ``read`` fixes.
        read: Reads the model itself.
    """
    said = msgspec.json.encode([ov.get_version(), sorted(shapes.items()), _stamps(Path(path))])
    kept = Path(folder) / f"read-{hashlib.sha256(said).hexdigest()[:32]}.xml"
    if not kept.is_file():
        model = read()
        try:
            _keep(model, kept)
        except (OSError, RuntimeError) as error:
            log.debug("%s is not kept: %s", kept.name, error)
            return model
    try:
        return core.read_model(kept)
    except READ_ERRORS as error:
        log.warning("%s: a kept model is read anew: %s", kept.name, reason(error))
        kept.unlink(missing_ok=True)
        return read()


def _stamps(path: Path) -> list[tuple[int, int]]:
    """Return what tells of a change: who replaces a file after it was planned gets its own."""
    files = sorted(path.rglob("*")) if path.is_dir() else [path]
    return [(status.st_size, status.st_mtime_ns) for status in (file.stat() for file in files)]


def _keep(model: Any, kept: Path) -> None:
    """Save a model so that it is there whole or not at all: its weights first."""
    with tempfile.TemporaryDirectory(dir=kept.parent) as folder:
        made = Path(folder) / kept.name
        ov.save_model(model, made, compress_to_fp16=False)
        made.with_suffix(".bin").replace(kept.with_suffix(".bin"))
        made.replace(kept)

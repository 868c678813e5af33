"""Files that a pipeline reads and writes: what is read is never written over."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from edgert.errors import Fault
from edgert.paths import below
from edgert.pipeline.contract import StageContract
from edgert.pipeline.document import Document
from edgert.stages.sink.target import MEND, absolute

_READ = ("uri", "model", "labels", "keypoints", "characters", "credentials")
_STANDARD_OUTPUT = "-"


def overwrite_faults(document: Document, contracts: Mapping[str, StageContract]) -> Iterator[Fault]:
    """Find sinks whose file is the pipeline's, one that a stage reads, or another sink's.

    Args:
        document: The file.
        contracts: The contract of each stage's kind.
    """
    stages = {name: stage.settings for name, stage in document.spec.stages.items()}
    taken = [("the pipeline file", document.path), *files_read(stages, document.folder)]
    for name, settings in stages.items():
        path = file_written(settings)
        if path is None or name not in contracts or contracts[name].outputs:
            continue
        what = next((what for what, other in taken if is_same(path, other)), "")
        if what and not _is_device(path):  # which may have several writers
            place = f"stage '{name}', file '{path}'"
            yield document.fault(("stages", name, "path"), place, f"is {what}", MEND)
        taken.append((f"`path` of stage '{name}'", path))


def files_read(stages: Mapping[str, Mapping[str, Any]], folder: Path) -> Iterator[tuple[str, Path]]:
    """Yield each file that stages read, and what it is; relative ones are the folder's.

    Args:
        stages: The settings of each stage.
        folder: Where the pipeline file is.
    """
    for name, settings in stages.items():
        for key in _READ:
            value = settings.get(key)
            file = below(folder, value) if isinstance(value, str) else None
            if file is not None and _is_file(file):
                yield f"`{key}` of stage '{name}'", file


def file_written(settings: Mapping[str, Any]) -> Path | None:
    """Return the file that a sink with these settings writes; none where it prints."""
    path = settings.get("path")
    if not isinstance(path, str) or path == _STANDARD_OUTPUT or "\0" in path:
        return None
    return absolute(path)


def _is_device(path: Path) -> bool:
    with suppress(OSError):
        return not stat.S_ISREG(path.stat().st_mode)
    return False


def _is_file(path: Path) -> bool:
    with suppress(OSError):  # whoever opens it says why it cannot be looked at
        return path.is_file()
    return False


def is_same(one: Path, other: Path) -> bool:
    """Whether two paths name one file, which need not be there yet."""
    try:
        return one.samefile(other)
    except OSError:  # at least one is not there yet
        return os.path.realpath(one) == os.path.realpath(other)

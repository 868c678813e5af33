"""The file of ``--summary``: checked before the run, whole or absent after it."""

from __future__ import annotations

import stat
from pathlib import Path

import msgspec

from edgert.errors import ResourceError, UserError
from edgert.plan.files import file_written, files_read, is_same
from edgert.plan.structs import Plan
from edgert.redact import redact_all
from edgert.runtime.summary import Summary

MEND = "Give another path"


def require_own_file(path: Path, pipeline_file: Path, plan: Plan) -> None:
    """Check that no other file of the run would be written over.

    Raises:
        UserError: The pipeline file, or a file that a stage reads or writes, is at this path.
    """
    stages = {stage.name: stage.settings for stage in plan.stages()}
    written = ((f"`path` of stage '{name}'", file_written(each)) for name, each in stages.items())
    read = files_read(stages, Path(plan.folder))
    for what, other in [("the pipeline file", pipeline_file), *read, *written]:
        if other is not None and is_same(path, other):
            raise UserError(f"--summary '{path}'", f"is {what}", MEND)


def write_summary(path: Path, summary: Summary) -> None:
    """Write the summary.

    A regular file is made beside and renamed: whoever reads finds the old one or the whole new one.

    Raises:
        ResourceError: It cannot be written.
    """
    plain = redact_all(msgspec.to_builtins(summary))
    encoded = msgspec.json.format(msgspec.json.encode(plain), indent=2) + b"\n"
    try:
        if path.exists() and not stat.S_ISREG(path.stat().st_mode):
            path.write_bytes(encoded)  # /dev/stdout, say
        else:
            _replace(path.resolve(), encoded)
    except OSError as error:
        raise ResourceError(
            f"--summary '{path}'", f"cannot be written ({error.strerror})", MEND
        ) from error


def _replace(path: Path, data: bytes) -> None:
    beside = path.with_name(f".{path.name}.part")
    try:
        beside.write_bytes(data)
        beside.replace(path)
    except OSError:
        beside.unlink(missing_ok=True)
        raise

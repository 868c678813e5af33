"""The file of ``--summary``: checked before the run, whole or absent after it."""

from __future__ import annotations

import stat
from collections.abc import Iterator
from pathlib import Path

import msgspec

from edgert.errors import ResourceError, UserError
from edgert.plan.structs import Plan
from edgert.redact import redact_all
from edgert.runtime.summary import Summary

MEND = "Give another path"


def require_own_file(path: Path, pipeline_file: Path, plan: Plan) -> None:
    """Check that no other file of the run would be written over.

    Raises:
        UserError: The pipeline file, or a file that a stage reads or writes, is at this path.
    """
    for what, other in [("the pipeline file", pipeline_file), *_files_of(plan)]:
        if _is_same(path, other):
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


def _files_of(plan: Plan) -> Iterator[tuple[str, Path]]:
    """Yield what each stage reads (below the file's folder) and writes (below the current one)."""
    for stage in plan.stages():
        for key, folder in (("path", Path.cwd()), ("uri", Path(plan.folder))):
            value = stage.settings.get(key)
            if isinstance(value, str) and value != "-":
                yield f"`{key}` of stage '{stage.name}'", folder / Path(value).expanduser()


def _is_same(one: Path, other: Path) -> bool:
    try:
        return one.samefile(other)
    except OSError:  # at least one is not there yet
        return one.resolve() == other.resolve()

"""Files of results in parts: the newest at the path itself, finished ones beside it, numbered.

results.jsonl          is being written
results.000007.jsonl   is finished: its name appears when it is whole, and never changes
results.000006.jsonl   ... as many as are kept
"""

from __future__ import annotations

import contextlib
import os
import re
import time
from pathlib import Path

from edgert.errors import StageError
from edgert.options import Options, option
from edgert.stages.sink.room import MB


class RotateOptions(Options):
    """``rotate:`` of a sink that writes files."""

    size_mb: float = option(
        default=0, ge=0, le=1e6, description="A part is finished at this size; 0 is no limit."
    )
    duration_s: float = option(
        default=0, ge=0, le=1e7, description="A part is finished after so long; 0 is no limit."
    )
    keep: int = option(
        default=10, ge=1, le=100_000, description="Finished parts that stay; older ones go."
    )

    def check(self, given: frozenset[str]) -> None:
        """Refuse parts without an end."""
        if not self.size_mb and not self.duration_s:
            raise ValueError("needs `size_mb` or `duration_s`")


ROTATE = option(
    default=None,
    description="Files in parts: `{size_mb: 100, keep: 10}`, `{duration_s: 3600}`. The part that "
    "is being written is at `path`, finished ones beside it with a number (`out.000007.jsonl`), "
    "the oldest of more than `keep` (10) are removed. What an earlier run left is kept as a part.",
)
MIN_FREE_MB = option(
    default=0,
    ge=0,
    le=1e9,
    description="With less than this free where the file is, nothing is written until there is "
    "room: said once, and each frame counts as lost. 0: a full disk ends the run.",
)


class Rotation:
    """When a part is finished, and what becomes of it.

    Args:
        path: The file that is written.
        options: Its limits; None where it is one file for ever.
        place: The stage, for errors.
    """

    def __init__(self, path: Path, options: RotateOptions | None, place: str) -> None:
        self._path, self._options, self._place = path, options, place
        self._began_s = time.monotonic()

    @property
    def is_wanted(self) -> bool:
        """Whether the file comes in parts."""
        return self._options is not None

    def begin(self) -> None:
        """Note that a part begins."""
        self._began_s = time.monotonic()

    def is_due(self, size_bytes: int, more_bytes: int = 0) -> bool:
        """Whether a part of this size is to be finished before more is written to it."""
        options = self._options
        if options is None or not size_bytes:
            return False
        if options.size_mb and size_bytes + more_bytes > options.size_mb * MB:
            return True
        return bool(options.duration_s) and time.monotonic() >= self._began_s + options.duration_s

    def newest(self) -> Path | None:
        """Return the part that was finished last; None where there is none."""
        numbers = self._numbers()
        return self._named(numbers[-1]) if numbers else None

    def finish(self) -> None:
        """Give the file its name as a finished part, and remove parts that are too many.

        Raises:
            StageError: The folder is gone, or must not be written any more.
        """
        options = self._options
        if options is None or not self._path.exists() or not self._path.stat().st_size:
            return
        try:
            self._finish(options.keep)
        except OSError as error:
            fault = f"cannot be renamed as a finished part: {error.strerror}"
            place = f"{self._place}, file '{self._path}'"
            raise StageError(place, fault, "see to its folder") from error

    def _finish(self, keep: int) -> None:
        numbers = self._numbers()
        number = numbers[-1] + 1 if numbers else 1
        _to_disk(self._path)  # else a power cut might leave the name without the content
        self._path.rename(self._named(number))
        for old in [*numbers, number][:-keep]:
            self._named(old).unlink(missing_ok=True)

    def _named(self, number: int) -> Path:
        return self._path.with_name(f"{self._path.stem}.{number:06d}{self._path.suffix}")

    def _numbers(self) -> list[int]:
        stem, suffix = re.escape(self._path.stem), re.escape(self._path.suffix)
        pattern = re.compile(rf"{stem}\.(\d{{6,}}){suffix}")
        found = (pattern.fullmatch(name) for name in os.listdir(self._path.parent))  # noqa: PTH208
        return sorted(int(match[1]) for match in found if match)


def _to_disk(path: Path) -> None:
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        with contextlib.suppress(OSError):  # a file system that cannot
            os.fdatasync(fd)
    finally:
        os.close(fd)

"""Files that are written once and then belong to whoever edits them.

What was written is remembered by its checksum. A file that is still as it was written is replaced;
one that somebody has changed is left alone, and what is new stands beside it, as ``NAME.new``.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from edgert.errors import ResourceError
from edgert.models.atomic import move_into_place

WRITTEN, KEPT, SAME, REMOVED = "written", "kept", "unchanged", "removed"


@dataclass(frozen=True, slots=True)
class Step:
    """What was done with a file, or would be.

    Attributes:
        path: The file.
        action: ``written``, ``unchanged``, ``kept`` (because it was edited) or ``removed``.
        note: What else there is to know.
    """

    path: Path
    action: str
    note: str = ""

    def __str__(self) -> str:
        """Return it as a line for people."""
        return f"{self.action:9} {self.path}{f' ({self.note})' if self.note else ''}"


class Record(msgspec.Struct):
    """The checksums of what was written, by path from the root."""

    files: dict[str, str] = {}
    schema: str = "edgert.service/1"


@dataclass(slots=True)
class Keeper:
    """Writes and removes files below a root, and leaves those alone that were edited.

    Attributes:
        root: The root.
        file: Where the record is kept.
        dry: Whether nothing is changed.
        steps: What was done so far, or would be.
    """

    root: Path
    file: Path
    dry: bool = False
    steps: list[Step] = field(default_factory=list)
    _record: Record = field(default_factory=Record)

    def __post_init__(self) -> None:
        """Read the record; one that cannot be read counts as none, so that nothing is replaced."""
        try:
            self._record = msgspec.json.decode(self.file.read_bytes(), type=Record)
        except (OSError, msgspec.MsgspecError):
            self._record = Record()

    def write(self, path: Path, text: str, mode: int = 0o644) -> None:
        """Write a file, unless somebody has edited it."""
        new, there = _checksum(text.encode()), self._checksum_of(path)
        written = self._written(path)
        if there == new:
            self._note(Step(path, SAME), new)
        elif there is None or there == written:
            self._put(path, text, mode)
            self._note(Step(path, WRITTEN), new)
        elif written == new:
            self.steps.append(Step(path, KEPT, "it was edited"))
        else:
            beside = path.with_name(f"{path.name}.new")
            self._put(beside, text, mode)
            self.steps.append(Step(path, KEPT, f"it was edited; what is new is in {beside.name}"))

    def offer(self, path: Path, text: str, mode: int) -> None:
        """Write a file that is there to be edited, unless there is one."""
        if self._checksum_of(path) is None:
            self.write(path, text, mode)
        else:
            self.steps.append(Step(path, KEPT, "it is yours"))

    def remove(self, path: Path) -> None:
        """Remove a file, unless somebody has edited it."""
        there = self._checksum_of(path)
        if there is None:
            self._forget(path)
        elif there == self._written(path):
            if not self.dry:
                _changing(path, lambda: _take_away(path))
            self._forget(path)
            self.steps.append(Step(path, REMOVED))
        else:
            self.steps.append(Step(path, KEPT, "it was edited"))

    def save(self) -> None:
        """Write the record; one of nothing is removed."""
        if self.dry:
            return
        text = msgspec.json.format(msgspec.json.encode(self._record)).decode()
        if self._record.files:
            _changing(self.file, lambda: _put_whole(self.file, f"{text}\n", 0o644))
        else:
            _changing(self.file, lambda: self.file.unlink(missing_ok=True))

    def files(self) -> Mapping[Path, str]:
        """Return what is in the record."""
        return {self.root / path: checksum for path, checksum in self._record.files.items()}

    def _put(self, path: Path, text: str, mode: int) -> None:
        if not self.dry:
            _changing(path, lambda: _put_whole(path, text, mode))

    def _note(self, step: Step, checksum: str) -> None:
        self.steps.append(step)
        self._record.files[self._key(step.path)] = checksum

    def _forget(self, path: Path) -> None:
        self._record.files.pop(self._key(path), None)

    def _written(self, path: Path) -> str:
        return self._record.files.get(self._key(path), "")

    def _key(self, path: Path) -> str:
        return str(path.relative_to(self.root))

    def _checksum_of(self, path: Path) -> str | None:
        try:
            return _checksum(path.read_bytes())
        except FileNotFoundError:
            return None
        except OSError as error:
            fault = f"cannot be read ({error.strerror})"
            raise ResourceError(f"file '{path}'", fault, _MEND) from error


_MEND = "Run it as root, on a file system that can be written; for an image give its --root"


def _changing(path: Path, change: Callable[[], object]) -> None:
    try:
        change()
    except OSError as error:
        fault = f"cannot be changed ({error.strerror})"
        raise ResourceError(f"file '{path}'", fault, _MEND) from error


def _put_whole(path: Path, text: str, mode: int) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    fd, temporary = tempfile.mkstemp(prefix=".", dir=path.parent)
    try:
        with os.fdopen(fd, "w") as file:
            file.write(text)
            os.fchmod(fd, mode)
        move_into_place(Path(temporary), path)
    except OSError:
        Path(temporary).unlink(missing_ok=True)
        raise


def _take_away(path: Path) -> None:
    path.unlink()
    if path.parent.suffix == ".d":  # a folder of drop-ins, which others may use too
        with contextlib.suppress(OSError):
            path.parent.rmdir()


def _checksum(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()

"""What a run has found so far, on disk: a run that was ended goes on where it was.

    STATE/coverage/IDENTITY.jsonl:  one line for each case that is done, whole lines only

The identity is a hash of everything that could change an answer: device, options, versions, suite.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, Self

import msgspec

from edgert.coverage.record import Case, Model
from edgert.errors import ResourceError


class Done(msgspec.Struct, frozen=True, omit_defaults=True):
    """An item that is done; ``key`` as ``Item.key``, and what was found of it."""

    key: str
    case: Case | None = None
    model: Model | None = None


_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(Done).decode


def state_root(environment: Mapping[str, str] = os.environ) -> Path:
    """Return the folder for what outlives a run (XDG_STATE_HOME/edgert, or ~/.local/state)."""
    base = Path(environment.get("XDG_STATE_HOME", ""))
    return (base if base.is_absolute() else Path("~/.local/state").expanduser()) / "edgert"


class Journal:
    """The journal of one run; use it in a ``with``.

    Args:
        identity: JSON-able; runs with the same may go on with each other's journal.
        fresh: Forget what an earlier run left.
    """

    def __init__(self, identity: Any, *, fresh: bool = False) -> None:
        digest = hashlib.sha256(msgspec.json.encode(identity, order="deterministic")).hexdigest()
        self.path = state_root() / "coverage" / f"{digest[:32]}.jsonl"
        if fresh:
            self.path.unlink(missing_ok=True)
        self.done: dict[str, Case | Model] = {}
        self._file: BinaryIO | None = None

    def __enter__(self) -> Self:
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            whole = self._read()
            self._file = self.path.open("ab", buffering=0)
            self._file.truncate(whole)
        except OSError as error:
            fault = f"cannot be written: {error.strerror}"
            raise ResourceError(str(self.path), fault, "Set XDG_STATE_HOME to a folder") from error
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._file is not None:
            self._file.close()

    def add(self, key: str, found: Case | Model) -> None:
        """Note that an item is done."""
        self.done[key] = found
        done = Done(key, case=found) if isinstance(found, Case) else Done(key, model=found)
        if self._file is not None:
            self._file.write(_encode(done) + b"\n")

    def forget(self) -> None:
        """Take the journal away: its run came to its end."""
        self.path.unlink(missing_ok=True)

    def _read(self) -> int:
        """Take in what is there; returns the bytes up to the end of the last whole line."""
        whole = 0
        try:
            lines = self.path.read_bytes().splitlines(keepends=True)
        except FileNotFoundError:
            return 0
        for line in lines:
            try:
                done = _decode(line)
            except msgspec.DecodeError:  # a line that a kill cut, or of an older format
                break
            found = done.case or done.model
            if found is None or not line.endswith(b"\n"):
                break
            self.done[done.key] = found
            whole += len(line)
        return whole

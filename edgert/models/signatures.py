"""Inputs and outputs of a model file, read in a child process and remembered."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from edgert import isolate
from edgert.errors import EdgertError, ModelError
from edgert.models.atomic import write_atomically
from edgert.models.locate import Located
from edgert.tensor import TensorSpec
from edgert.version import __version__

READ = "edgert.backends.registry:read_signature"
READ_SEVERAL = "edgert.backends.registry:read_signatures"
TIMEOUT_S = 120.0
log = logging.getLogger(__name__)

# Raised when more is remembered, so that what an older version remembered is read anew.
_FORM = 3
Shapes = Mapping[str, list[int]]


class Signature(msgspec.Struct, frozen=True):
    """Inputs and outputs in the model's order; None in a shape is an open dimension."""

    inputs: dict[str, TensorSpec]
    outputs: dict[str, TensorSpec]


class Signatures:
    """Reads signatures once for each file and set of shapes."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def read(self, model: Located, shapes: Shapes) -> Signature:
        """Return inputs and outputs after fixing ``shapes``.

        Raises:
            UserError: The file is damaged, ``shapes`` do not fit, or no runtime reads it.
        """
        path = model.need_path()
        remembered = self.folder / f"{_key(model, shapes)}.json"
        known = _recall(remembered)
        if known:
            return known
        arguments = {"path": str(path), "shapes": shapes, "format": model.format}
        answer = isolate.call(READ, arguments, TIMEOUT_S, model.place, ModelError)
        found = msgspec.convert(answer, Signature)
        _remember(remembered, found)
        return found

    def read_ahead(self, model: Located, several: Sequence[Shapes]) -> None:
        """Read a model in several shapes by one child, so that ``read`` finds them remembered.

        What cannot be read so is read when it is asked for, and told then.
        """
        files = {self.folder / f"{_key(model, shapes)}.json": shapes for shapes in several}
        missing = {file: shapes for file, shapes in files.items() if not file.exists()}
        if len(missing) < 2 or model.path is None:
            return
        arguments = {
            "path": str(model.path),
            "shapes": list(missing.values()),
            "format": model.format,
        }
        try:
            answers = isolate.call(READ_SEVERAL, arguments, TIMEOUT_S, model.place, ModelError)
        except EdgertError as error:
            log.debug("%s: not read ahead: %s", model.place, error)
            return
        for file, answer in zip(missing, answers, strict=True):
            if answer is not None:
                _remember(file, msgspec.convert(answer, Signature))


def _key(model: Located, shapes: Shapes) -> str:
    known_by = [_FORM, model.sha256, sorted(shapes.items()), model.format, __version__]
    said = msgspec.json.encode(known_by)
    return hashlib.sha256(said).hexdigest()


def _recall(path: Path) -> Signature | None:
    try:
        return msgspec.json.decode(path.read_bytes(), type=Signature)
    except (OSError, msgspec.DecodeError):
        return None


def _remember(path: Path, signature: Signature) -> None:
    try:
        write_atomically(path, msgspec.json.encode(signature))
    except OSError as error:
        # Only the next start is slower.
        log.debug("cannot remember a signature: %s", error)

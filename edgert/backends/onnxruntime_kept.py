"""Keeps what a plug-in provider compiled of a model: an ONNX file whose nodes are its blobs.

    FOLDER/context-KEY.onnx    nodes of type EPContext, and those that the CPU computes
    FOLDER/context-KEY.json    its checksum, and how much of the model the provider took
    FOLDER/context-KEY.none    this provider gives nothing that could be kept: it is not asked again

An accelerator's compiler may take minutes, and no driver is trusted with a damaged blob: it is
loaded only if its checksum is right. Whatever is wrong, the model is compiled.
"""

from __future__ import annotations

import contextlib
import hashlib
import logging
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from edgert.backends.placement import Placement
from edgert.errors import UserError

log = logging.getLogger("edgert.backends.onnxruntime")

# Opens a session of a model, or of the file that is given instead, with further configuration.
Open = Callable[[Path | None, Mapping[str, str]], Any]
Count = Callable[[Any], Placement | None]


class Opened(NamedTuple):
    """A session, and how much of the model the provider took."""

    session: Any
    placed: Placement | None


class Context(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What is remembered beside a compiled model.

    Attributes:
        sha256: Checksum of the file.
        placed: How much of the model the provider took: its blobs do not tell.
    """

    sha256: str
    placed: Placement | None


def open_or_keep(folder: str, key: Any, open_session: Open, count: Count) -> Opened:
    """Open a model from what is kept of it, else compile it and keep that.

    Args:
        folder: Where forms of this model are kept, and of no other.
        key: All that the compiled form depends on beside the model, JSON-able.
        open_session: Opens a session, and raises a UserError where that is refused.
        count: Counts what the provider took in a session.
    """
    name = f"context-{hashlib.sha256(msgspec.json.encode(key)).hexdigest()[:32]}"
    kept = Path(folder) / f"{name}.onnx"
    nothing = kept.with_suffix(".none")
    if nothing.exists():
        return _opened(open_session(None, {}), count)
    context = _recall(kept)
    if context is not None:
        try:
            return Opened(_load(kept, context, open_session, count), context.placed)
        except UserError as error:
            log.warning("%s: compiled anew, and kept no more: %s", kept.name, error)
            _forget(kept)
            _remember_nothing(nothing)
            return _opened(open_session(None, {}), count)
    return _compile(kept, open_session, count)


def _opened(session: Any, count: Count) -> Opened:
    return Opened(session, count(session))


def _recall(kept: Path) -> Context | None:
    """Return what is known of a kept file that is whole."""
    try:
        context = msgspec.json.decode(kept.with_suffix(".json").read_bytes(), type=Context)
        found = _sha256(kept)
    except FileNotFoundError:
        return None
    except (OSError, msgspec.DecodeError) as error:
        log.warning("%s: compiled anew: %s", kept.name, error)
        return None
    if found != context.sha256:
        log.warning("%s: compiled anew: the kept file is damaged", kept.name)
        return None
    return context


def _load(kept: Path, context: Context, open_session: Open, count: Count) -> Any:
    """Open a kept file.

    Raises:
        UserError: It is refused, or other nodes are left to the CPU than when it was made.
    """
    session = open_session(kept, {})
    now, then = count(session), context.placed
    if (now is None) != (then is None) or (now and then and _left(now) != _left(then)):
        raise UserError(f"'{kept}'", f"the provider takes {now} of it, and took {then}")
    return session


def _left(placed: Placement) -> int:
    return placed.of - placed.taken if placed.taken else -1


def _compile(kept: Path, open_session: Open, count: Count) -> Opened:
    try:
        made = tempfile.TemporaryDirectory(dir=kept.parent)
    except OSError as error:
        log.debug("%s is not kept: %s", kept.name, error)
        return _opened(open_session(None, {}), count)
    with made:
        file = Path(made.name) / kept.name
        asked = {
            "ep.context_enable": "1",
            "ep.context_file_path": str(file),
            "ep.context_embed_mode": "1",
        }
        try:
            opened = _opened(open_session(None, asked), count)
        except UserError as error:
            # The model may be refused, or only that it be kept: another try tells.
            opened = _opened(open_session(None, {}), count)
            log.debug("%s is not kept: %s", kept.name, error)
            _remember_nothing(kept.with_suffix(".none"))
            return opened
        _keep(file, kept, opened.placed)
        return opened


def _keep(file: Path, kept: Path, placed: Placement | None) -> None:
    """Move a file in, so that it is there whole or not at all: what vouches for it comes last."""
    try:
        _forget(kept)
        context = Context(_sha256(file), placed)
        file.with_suffix(".json").write_bytes(msgspec.json.encode(context))
        file.replace(kept)
        file.with_suffix(".json").replace(kept.with_suffix(".json"))
    except FileNotFoundError:
        log.debug("%s is not kept: the provider wrote nothing", kept.name)
        _remember_nothing(kept.with_suffix(".none"))
    except OSError as error:
        log.debug("%s is not kept: %s", kept.name, error)


def _forget(kept: Path) -> None:
    with contextlib.suppress(OSError):
        kept.with_suffix(".json").unlink(missing_ok=True)
        kept.unlink(missing_ok=True)


def _remember_nothing(path: Path) -> None:
    with contextlib.suppress(OSError):
        path.touch()


def _sha256(file: Path) -> str:
    with file.open("rb") as data:
        return hashlib.file_digest(data, "sha256").hexdigest()

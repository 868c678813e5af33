"""Which files an ONNX model keeps its weights in, found without parsing it.

A model is its checksum here, for kept compilations and for a reload; one whose weights lie in files
beside it would stay the same while they change. A parser reads it only in a child, much later, so
the marks of such files are looked for in the bytes: ``TensorProto.external_data`` (onnx.proto) is a
list of StringStringEntryProto, of which the one with the key ``location`` has the name.
"""

from __future__ import annotations

import mmap
import re
from pathlib import Path

# Field 1, the key, of 8 bytes; then field 2, the value, with its length as a varint of one or two
# bytes. Protobuf writes fields in this order. Weights that look so by chance name no file.
_LOCATION = re.compile(rb"\x0a\x08location\x12([\x01-\x7f]|[\x80-\xff][\x01-\x07])")


def weights_beside(path: Path) -> tuple[Path, ...]:
    """Return the files of weights below a model's folder, by name; those that are not there never.

    Args:
        path: A regular file that is not empty.

    Raises:
        OSError: It cannot be read.
    """
    folder = path.resolve().parent
    found = {(folder / name).resolve() for name in _names(path)}
    return tuple(sorted(one for one in found if one.is_relative_to(folder) and one.is_file()))


def _names(path: Path) -> set[str]:
    with (
        path.open("rb") as file,
        mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content,
    ):
        marks = _LOCATION.finditer(content)
        raw = {content[mark.end() : mark.end() + _number(mark[1])] for mark in marks}
    names = (one.decode("utf-8", "replace") for one in raw)
    return {name for name in names if "\0" not in name}


def _number(varint: bytes) -> int:
    return sum((byte & 0x7F) << (7 * at) for at, byte in enumerate(varint))

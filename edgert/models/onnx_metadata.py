"""The metadata that an ONNX file carries, read without any library.

    ModelProto { ... graph = 7; ... repeated StringStringEntryProto metadata_props = 14 }
    StringStringEntryProto { key = 1; value = 2 }

Everything else, the weights too, is skipped by its length. Fields are drawn in ``onnx/onnx.proto``
of https://github.com/onnx/onnx, the wire format at https://protobuf.dev/programming-guides/encoding.
"""

from __future__ import annotations

from collections.abc import Iterator
from mmap import ACCESS_READ, mmap
from pathlib import Path

from edgert.errors import ModelError

METADATA_PROPS = 14
KEY, VALUE = 1, 2
_VARINT, _64_BITS, _LENGTH, _32_BITS = 0, 1, 2, 5
_MOST_VARINT_BYTES = 10

Span = tuple[int, int]


def read_metadata(path: str) -> dict[str, str]:
    """Return the metadata of an ONNX file; empty where it has none.

    Raises:
        ModelError: The file cannot be read, or is damaged.
    """
    place = f"model {Path(path).name!r}"
    try:
        with Path(path).open("rb") as file, mmap(file.fileno(), 0, access=ACCESS_READ) as data:
            return dict(
                _entry(data, span)
                for field, span in _fields(data, (0, len(data)))
                if field == METADATA_PROPS
            )
    except OSError as error:
        raise ModelError(place, f"cannot be read: {error.strerror}") from error
    except (ValueError, IndexError) as error:  # an empty file cannot be mapped: ValueError
        raise ModelError(place, "its metadata is damaged", "Fetch it again") from error


def _entry(data: mmap, span: Span) -> tuple[str, str]:
    parts = {field: data[start:end].decode() for field, (start, end) in _fields(data, span)}
    return parts.get(KEY, ""), parts.get(VALUE, "")


def _fields(data: mmap, span: Span) -> Iterator[tuple[int, Span]]:
    """Yield number and place of each field that has a length.

    Raises:
        ValueError: The bytes are no such message.
    """
    at, end = span
    while at < end:
        tag, at = _varint(data, at)
        kind = tag & 7
        if kind == _VARINT:
            _, at = _varint(data, at)
        elif kind in (_64_BITS, _32_BITS):
            at += 8 if kind == _64_BITS else 4
        elif kind == _LENGTH:
            size, at = _varint(data, at)
            if at + size > end:
                raise ValueError("a field is longer than its message")
            yield tag >> 3, (at, at + size)
            at += size
        else:
            raise ValueError(f"there is no field of type {kind}")


def _varint(data: mmap, at: int) -> tuple[int, int]:
    """Return a number in groups of seven bits, the lowest first, and where the next thing is."""
    value = 0
    for n in range(_MOST_VARINT_BYTES):
        byte = data[at + n]
        value |= (byte & 0x7F) << 7 * n
        if byte < 0x80:
            return value, at + n + 1
    raise ValueError("a number has no end")

"""The bytes before a slot's tensors, as drawn in ``slot.py``: packed, and checked when unpacked.

They come from another process, which may decode hostile media: what no writer of ours writes is
refused, so that no array reaches beyond its own tensor.
"""

from __future__ import annotations

import mmap
import struct
import sys
from math import prod
from typing import Any

import msgspec

from edgert.errors import StageError
from edgert.tensor import (
    COLOUR_MATRICES,
    COLOUR_RANGES,
    DTYPES,
    ITEM_BYTES,
    PIXEL_FORMATS,
    FrameHeader,
)

HEADER_BYTES = 128
ENTRY_BYTES = 48
MAX_DIMENSIONS = 5
ABSENT = 0xFF

_HEADER = struct.Struct("<QIHBBqqII6dIII")
IDENTITY_OF_FRAME = struct.Struct("<QIH")  # sequence, epoch, stream: the head of _HEADER
TRANSFORM = struct.Struct("<6d")
TRANSFORM_AT = struct.calcsize("<QIHBBqqII")
METADATA_BYTES = struct.Struct("<I")
METADATA_AT = _HEADER.size - 4
_ENTRY = struct.Struct("<BBHI5Q")

_DTYPE_NAMES = tuple(DTYPES)
_DTYPE_CODES = {name: code for code, name in enumerate(_DTYPE_NAMES)}
_FORMAT_NAMES = tuple(PIXEL_FORMATS)
_FORMAT_CODES = {name: code for code, name in enumerate(_FORMAT_NAMES)}
_PARTIAL = 0x80

_decode_metadata = msgspec.msgpack.Decoder(dict[str, Any]).decode


def unpack_header(memory: mmap.mmap, base: int) -> FrameHeader:
    """Return the header of the slot that begins at ``base``.

    Raises:
        StageError: It is damaged.
    """
    v = _HEADER.unpack_from(memory, base)
    flags = v[4]
    try:
        return FrameHeader(
            v[2],
            v[0],
            v[1],
            v[5],
            v[6],
            v[7],
            v[8],
            v[9:15],
            _FORMAT_NAMES[v[3]],
            COLOUR_MATRICES[flags & 3],
            COLOUR_RANGES[flags >> 2 & 1],
            bool(flags & _PARTIAL),
            v[15],
            v[16],
        )
    except IndexError:
        raise damaged(f"pixel format {v[3]}, colours {flags:#x}") from None


def pack_header(memory: mmap.mmap, base: int, header: FrameHeader) -> None:
    """Write a header; the length of the metadata stays."""
    flags = COLOUR_MATRICES.index(header.colour_matrix)
    flags |= COLOUR_RANGES.index(header.colour_range) << 2
    flags |= _PARTIAL if header.is_partial else 0
    (metadata,) = METADATA_BYTES.unpack_from(memory, base + METADATA_AT)
    _HEADER.pack_into(
        memory,
        base,
        header.sequence,
        header.epoch,
        header.stream,
        _FORMAT_CODES[header.pixel_format],
        flags,
        header.pts_ns,
        header.captured_ns,
        header.width,
        header.height,
        *header.transform,
        header.input_width,
        header.input_height,
        metadata,
    )


def unpack_metadata(memory: mmap.mmap, base: int, offset: int, most_bytes: int) -> dict[str, Any]:
    """Return the metadata of a slot; empty where it has none.

    Raises:
        StageError: It is damaged.
    """
    (size,) = METADATA_BYTES.unpack_from(memory, base + METADATA_AT)
    if not size:
        return {}
    if size > most_bytes:
        raise damaged(f"{size} bytes of metadata, of {most_bytes}")
    try:
        return _decode_metadata(memory[base + offset : base + offset + size])
    except msgspec.DecodeError as error:
        raise damaged(f"metadata: {error}") from None


def unpack_entry(table: bytes, number: int, most_bytes: int) -> tuple[str, tuple[int, ...]] | None:
    """Return dtype and shape of a tensor that has ``most_bytes`` of room; None where it is absent.

    Raises:
        StageError: Its entry is damaged.
    """
    code, dimensions, _, _, *shape = _ENTRY.unpack_from(table, number * ENTRY_BYTES)
    if code == ABSENT:
        return None
    if code >= len(_DTYPE_NAMES) or dimensions > MAX_DIMENSIONS:
        raise damaged(f"dtype {code}, {dimensions} dimensions")
    dtype, sizes = _DTYPE_NAMES[code], tuple(shape[:dimensions])
    item_bytes = ITEM_BYTES[dtype]
    # numpy wants each size to be possible, even beside a zero.
    if prod(sizes) * item_bytes > most_bytes or prod(s or 1 for s in sizes) > sys.maxsize >> 4:
        raise damaged(f"shape {list(sizes)} of {dtype}, in {most_bytes} bytes")
    return dtype, sizes


def pack_entry(memory: mmap.mmap, at: int, dtype: str | None, shape: tuple[int, ...]) -> None:
    """Write the entry of a tensor; ``None`` marks it as absent."""
    code = ABSENT if dtype is None else _DTYPE_CODES[dtype]
    padded = (*shape, 0, 0, 0, 0, 0)[:MAX_DIMENSIONS]
    _ENTRY.pack_into(memory, at, code, len(shape), 0, 0, *padded)


def damaged(what: str) -> StageError:
    """Return the error of a slot that no writer of ours has written."""
    return StageError("a frame in shared memory", f"its header is damaged ({what})")

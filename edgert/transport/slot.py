"""A slot: the bytes of one frame on one port, and the two ways to hold it, a loan and a sample.

    | 0 header 128 B | 128 table, 48 B a tensor | metadata | tensors, each on its own page ... |

    header: u64 sequence | u32 epoch | u16 stream | u8 format | u8 matrix and range and flags |
            i64 pts_ns | i64 captured_ns | u32 width | u32 height | 6 f64 transform |
            u32 input width | u32 input height | u32 metadata bytes, 0 = none
    table:  u8 dtype (0xff = absent) | u8 dimensions | u16 0 | u32 0 | 5 u64 shape

Offsets of tensors are fixed by the port (``SlotLayout``); a frame only says how much of each it
uses. Arrays over a slot are made once and used again for as long as its table stays the same.
"""

from __future__ import annotations

import mmap
import sys
from collections.abc import Mapping, Sequence
from math import prod
from typing import Any, TypeVar

import msgspec
import numpy as np

from edgert.errors import FrameLostError
from edgert.tensor import DTYPES, ITEM_BYTES, FrameHeader, PortSpec
from edgert.transport.address import Array
from edgert.transport.header import (
    ENTRY_BYTES,
    HEADER_BYTES,
    IDENTITY_OF_FRAME,
    MAX_DIMENSIONS,
    METADATA_AT,
    METADATA_BYTES,
    TRANSFORM,
    TRANSFORM_AT,
    pack_entry,
    pack_header,
    unpack_entry,
    unpack_header,
    unpack_metadata,
)
from edgert.transport.holders import held_elsewhere

PAGE_BYTES = 4096
_NUMPY = {name: np.dtype(numpy) for name, numpy in DTYPES.items()}
_KEPT_AT_MOST = 128  # shapes of a slot's tensors whose arrays are kept: counts of things change
_Key = TypeVar("_Key")
_Made = TypeVar("_Made")
_encode_metadata = msgspec.msgpack.Encoder().encode


def _up_to_page(size: int) -> int:
    return -(-size // PAGE_BYTES) * PAGE_BYTES


class Place(msgspec.Struct, frozen=True):
    """Where one tensor lies in a slot.

    Attributes:
        name: The tensor's name on its port.
        dtype: A key of ``DTYPES``.
        max_shape: The largest shape it may have.
        offset: Bytes from the slot's start; a multiple of ``PAGE_BYTES``.
        max_bytes: Bytes of ``max_shape``.
    """

    name: str
    dtype: str
    max_shape: tuple[int, ...]
    offset: int
    max_bytes: int


class SlotLayout(msgspec.Struct, frozen=True):
    """How the slots of one ring are divided; the same for every slot of the ring."""

    places: tuple[Place, ...]
    metadata_offset: int
    metadata_bytes: int
    slot_bytes: int

    @classmethod
    def of(cls, port: PortSpec) -> SlotLayout:
        """Lay out the slots of a ring that carries ``port``; every size must be known."""
        metadata_offset = HEADER_BYTES + ENTRY_BYTES * len(port.tensors)
        at = _up_to_page(metadata_offset + port.metadata_bytes)
        places = []
        for name, spec in port.tensors.items():
            if None in spec.shape or len(spec.shape) > MAX_DIMENSIONS:
                msg = f"tensor {name!r} has shape {spec.shape}: a slot needs up to 5 known sizes"
                raise ValueError(msg)
            shape = tuple(size or 0 for size in spec.shape)
            places.append(Place(name, spec.dtype, shape, at, spec.nbytes))
            at = _up_to_page(at + spec.nbytes)
        return cls(tuple(places), metadata_offset, port.metadata_bytes, at)


class _Slot:
    """What a loan and a sample share: one slot of a mapped segment, and its header."""

    __slots__ = ("_base", "_by_name", "_map", "address", "index", "layout")

    def __init__(self, memory: mmap.mmap, layout: SlotLayout, index: int, address: int) -> None:
        self._map = memory
        self._base = index * layout.slot_bytes
        self._by_name = {place.name: (n, place) for n, place in enumerate(layout.places)}
        self.layout = layout
        self.index = index
        self.address = address + self._base
        """Address of the slot's first byte in this process."""

    @property
    def header(self) -> FrameHeader:
        """The frame's header."""
        return unpack_header(self._map, self._base)

    def address_of(self, name: str) -> int:
        """Address of a tensor's first byte in this process, for a driver that takes pointers."""
        return self.address + self._by_name[name][1].offset

    def copy_to(self, memory: mmap.mmap) -> None:
        """Copy the whole slot to the beginning of other memory; a loan that is filled, too."""
        start = self._base
        with memoryview(self._map) as ours, memoryview(memory) as theirs:
            theirs[: self.layout.slot_bytes] = ours[start : start + self.layout.slot_bytes]

    def _array(self, place: Place, dtype: str, shape: tuple[int, ...]) -> Array:
        # The buffer is the mapping itself, so that this array, and no other, is the base of every
        # view derived from it: its reference count tells of views that outlive the frame.
        return np.ndarray(shape, _NUMPY[dtype], self._map, self._base + place.offset)


class Sample(_Slot):
    """A frame that was received: read-only arrays over a slot that its writer will use again."""

    __slots__ = ("_counts", "_kept", "_table", "tensors")

    def __init__(self, memory: mmap.mmap, layout: SlotLayout, index: int, address: int) -> None:
        super().__init__(memory, layout, index, address)
        self._table = b""
        self._kept: dict[bytes, Mapping[str, Array]] = {}
        self._counts: tuple[int, ...] = ()
        self.tensors: Mapping[str, Array] = {}
        """The tensors this frame has, by name; read-only, of the frame's own shapes."""

    @property
    def metadata(self) -> dict[str, Any]:
        """The frame's metadata; empty where it has none."""
        offset, most_bytes = self.layout.metadata_offset, self.layout.metadata_bytes
        return unpack_metadata(self._map, self._base, offset, most_bytes)

    def refresh(self) -> None:
        """Look at the slot anew: called by the transport for each frame received."""
        start = self._base + HEADER_BYTES
        table = self._map[start : start + ENTRY_BYTES * len(self.layout.places)]
        if table != self._table:
            self._table = table
            self.tensors = self._kept.get(table) or self._read_table(table)
        self._counts = tuple(map(sys.getrefcount, self.tensors.values()))

    def views_kept(self) -> list[str]:
        """Name the tensors of which somebody still holds a view: asked after a release."""
        counts = tuple(map(sys.getrefcount, self.tensors.values()))
        if counts == self._counts:
            return []
        grown = zip(self.tensors, counts, self._counts, strict=True)
        return [name for name, now, before in grown if now > before]

    def _read_table(self, table: bytes) -> dict[str, Array]:
        tensors = {}
        for n, place in enumerate(self.layout.places):
            entry = unpack_entry(table, n, place.max_bytes)
            if entry is None:
                continue
            array = self._array(place, *entry)
            array.flags.writeable = False
            tensors[place.name] = array
        _keep(self._kept, table, tensors)
        return tensors


class Loan(_Slot):
    """A free slot lent to a writer: it fills the tensors it wants, then the slot is committed."""

    __slots__ = ("_arrays", "_kept", "_used")

    def __init__(self, memory: mmap.mmap, layout: SlotLayout, index: int, address: int) -> None:
        super().__init__(memory, layout, index, address)
        self._arrays: dict[str, Array] = {}
        self._kept: dict[tuple[str, tuple[int, ...]], Array] = {}
        self._used: set[str] = set()

    def clear(self) -> None:
        """Mark every tensor as absent: once, before the slot is lent for the first time."""
        for n, _ in self._by_name.values():
            self._write_entry(n, None, ())

    def tensor(self, name: str, shape: tuple[int, ...] | None = None) -> Array:
        """Return the array to write tensor ``name`` into; without ``shape`` it has its largest.

        The memory keeps what the slot's last frame left there.

        Raises:
            KeyError: The port has no such tensor.
            FrameLostError: The shape does not fit the slot; nothing is truncated.
        """
        n, place = self._by_name[name]
        self._used.add(name)
        wanted = place.max_shape if shape is None else shape
        array = self._arrays.get(name)
        if array is None or array.shape != wanted:
            array = self._kept.get((name, wanted))
            if array is None:
                array = self._make(place, wanted)
            self._arrays[name] = array
            self._write_entry(n, place.dtype, wanted)
        return array

    def _make(self, place: Place, shape: tuple[int, ...]) -> Array:
        size = prod(shape) * ITEM_BYTES[place.dtype]
        if size > place.max_bytes or len(shape) > MAX_DIMENSIONS:
            raise FrameLostError(
                f"tensor {place.name!r} of shape {list(shape)} needs {size} bytes, "
                f"its slot has {place.max_bytes}"
            )
        array = self._array(place, place.dtype, shape)
        _keep(self._kept, (place.name, shape), array)
        return array

    def inherit(self, source: _Slot) -> None:
        """Take over the header of the frame this one is made from; it has no metadata yet."""
        start, end = source._base, source._base + METADATA_AT  # noqa: SLF001
        self._map[self._base : self._base + METADATA_AT] = source._map[start:end]  # noqa: SLF001
        METADATA_BYTES.pack_into(self._map, self._base + METADATA_AT, 0)

    def set_header(self, header: FrameHeader) -> None:
        """Write the frame's header; metadata that was set stays."""
        pack_header(self._map, self._base, header)

    def set_transform(self, transform: tuple[float, ...]) -> None:
        """Write the frame's transform, six numbers; the rest of its header stays."""
        TRANSFORM.pack_into(self._map, self._base + TRANSFORM_AT, *transform)

    def set_metadata(self, metadata: Mapping[str, Any]) -> None:
        """Write the frame's metadata.

        Raises:
            FrameLostError: It does not fit the room that the port declares.
        """
        encoded = _encode_metadata(metadata)
        if len(encoded) > self.layout.metadata_bytes:
            raise FrameLostError(
                f"metadata of {len(encoded)} bytes, its slot has {self.layout.metadata_bytes}"
            )
        start = self._base + self.layout.metadata_offset
        self._map[start : start + len(encoded)] = encoded
        METADATA_BYTES.pack_into(self._map, self._base + METADATA_AT, len(encoded))

    @property
    def is_blank(self) -> bool:
        """Whether the port has tensors, and this frame was given none of them, nor metadata."""
        if self._used or not self.layout.places:
            return False
        (metadata,) = METADATA_BYTES.unpack_from(self._map, self._base + METADATA_AT)
        return not metadata

    def uneven(self, names: Sequence[str]) -> dict[str, tuple[int, ...]]:
        """Return the shapes of those tensors that were written, if their lengths differ."""
        shapes = {name: self._arrays[name].shape for name in names if name in self._used}
        return shapes if len({shape[:1] for shape in shapes.values()}) > 1 else {}

    def views_kept(self) -> list[str]:
        """Name the tensors of which somebody else holds a view: asked before it is sent."""
        return held_elsewhere(self._arrays)

    def finish(self) -> None:
        """Mark the tensors that were not asked for as absent: called by the transport."""
        if len(self._used) != len(self._arrays):
            for name in self._arrays.keys() - self._used:
                del self._arrays[name]
                self._write_entry(self._by_name[name][0], None, ())
        self._used.clear()

    def _write_entry(self, n: int, dtype: str | None, shape: tuple[int, ...]) -> None:
        at = self._base + HEADER_BYTES + n * ENTRY_BYTES
        pack_entry(self._map, at, dtype, shape)


def _keep(kept: dict[_Key, _Made], key: _Key, made: _Made) -> None:
    """Keep what was made for a shape, of the last ones that were new."""
    if len(kept) >= _KEPT_AT_MOST:
        kept.clear()
    kept[key] = made


def frame_of(memory: mmap.mmap, layout: SlotLayout, index: int) -> tuple[int, int]:
    """Return (stream, sequence) of the frame in a slot, for accounts after a death."""
    sequence, _, stream = IDENTITY_OF_FRAME.unpack_from(memory, index * layout.slot_bytes)
    return stream, sequence

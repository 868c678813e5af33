"""Lets go of what a process has read of its libraries' files and uses no more.

Of a file the kernel maps sixteen pages for each one that is touched, and much of a library is read
once: to be loaded, opened, and used for the first time. All of it counts as this process's. Let go,
the pages stay in the page cache: what is used again is back for a fraction of a microsecond, and
what is not, the kernel can reclaim sooner.
"""

from __future__ import annotations

import ctypes
import mmap
import struct
from typing import Any

_ELF_LOAD, _ELF_DYNAMIC = 1, 2
_WRITABLE = 2
_TEXT_RELOCATIONS, _FLAGS, _FLAG_TEXT_RELOCATIONS = 22, 30, 4
_ENTRY = struct.Struct("=qQ")  # of a dynamic section: tag, value
_IS_64_BIT = ctypes.sizeof(ctypes.c_void_p) == 8  # noqa: PLR2004  the structures below are
# Keeps the interpreter's lock: a thread that waited for it could hold the loader's lock.
_libc = ctypes.PyDLL(None)


class _Segment(ctypes.Structure):  # Elf64_Phdr
    _fields_ = (
        ("kind", ctypes.c_uint32),
        ("flags", ctypes.c_uint32),
        ("in_file", ctypes.c_uint64),
        ("address", ctypes.c_uint64),
        ("physical", ctypes.c_uint64),
        ("file_bytes", ctypes.c_uint64),
        ("bytes", ctypes.c_uint64),
        ("alignment", ctypes.c_uint64),
    )


class _Library(ctypes.Structure):  # dl_phdr_info
    _fields_ = (
        ("base", ctypes.c_uint64),
        ("name", ctypes.c_char_p),
        ("segments", ctypes.POINTER(_Segment)),
        ("count", ctypes.c_uint16),
    )


_Visitor = ctypes.CFUNCTYPE(
    ctypes.c_int, ctypes.POINTER(_Library), ctypes.c_size_t, ctypes.c_void_p
)


def let_go_of_libraries() -> None:
    """Unmap the pages of every library that nobody can have written to, until they are used.

    It takes two milliseconds, and five where OpenVINO is loaded.
    """
    if _IS_64_BIT:
        # The loader's lock is held meanwhile: no other thread loads or unloads a library.
        _libc.dl_iterate_phdr(_Visitor(_let_go), None)


def _let_go(found: Any, _size: int, _data: None) -> int:
    library = found.contents
    name = library.name or b""
    segments = [library.segments[n] for n in range(library.count)]
    is_file = b"/" in name or not name  # the program has no name; what is the kernel's, no folder
    if is_file and not any(_relocates_text(library.base, each) for each in segments):
        for segment in segments:
            if segment.kind == _ELF_LOAD and not segment.flags & _WRITABLE:
                _unmap_until_used(library.base + segment.address, segment.file_bytes)
    return 0


def _relocates_text(base: int, segment: _Segment) -> bool:
    """Whether the loader wrote addresses into pages that are read-only now: these must stay."""
    if segment.kind != _ELF_DYNAMIC:
        return False
    size = segment.bytes // _ENTRY.size * _ENTRY.size
    return any(
        tag == _TEXT_RELOCATIONS or (tag == _FLAGS and value & _FLAG_TEXT_RELOCATIONS)
        for tag, value in _ENTRY.iter_unpack(ctypes.string_at(base + segment.address, size))
    )


def _unmap_until_used(begin: int, size: int) -> None:
    """Unmap the pages that lie within as a whole; what cannot be unmapped stays."""
    first = -(-begin // mmap.PAGESIZE) * mmap.PAGESIZE
    end = (begin + size) // mmap.PAGESIZE * mmap.PAGESIZE
    if first < end:
        pages = ctypes.c_void_p(first), ctypes.c_size_t(end - first)
        _libc.madvise(*pages, mmap.MADV_DONTNEED)

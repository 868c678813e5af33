"""Lets go of what a process has read of its libraries' files and uses no more.

Of a file the kernel maps sixteen pages for each one that is touched, and much of a library is read
once: to be loaded, opened, and used for the first time. All of it counts as this process's. Let go,
the pages stay in the page cache: what is used again is back for a fraction of a microsecond, and
what is not, the kernel can reclaim sooner.

Pages that somebody has written to stay: the file does not have what stands there. That is asked of
the kernel for each part, a moment before it is let go. The loader's own list would be had under
its lock, and Python code under that lock waits for ever for a thread that imports a library.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import sys
from collections.abc import Iterable
from pathlib import Path

_MAPS, _PAGEMAP = "/proc/self/maps", "/proc/self/pagemap"
# Of the eight bytes for a page in the pagemap, the one with the bits "present" and "swapped", and
# "of a file" (Documentation/admin-guide/mm/pagemap.rst).
_ENTRY_BYTES = 8
_BITS_AT = _ENTRY_BYTES - 1 if sys.byteorder == "little" else 0
_THERE, _OF_FILE = 0xC0, 0x20
_LOOK_BYTES = 512 * mmap.PAGESIZE  # at a time: what is read itself should take no memory
_madvise = ctypes.PyDLL(
    None
).madvise  # keeps the interpreter's lock: no Python thread comes between
_madvise.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)


def let_go_of_libraries() -> None:
    """Unmap the read-only pages of every library to which nobody has written, until they are used.

    It takes a few milliseconds. Nothing is done where the kernel does not tell what was written to.
    """
    try:
        with open(_PAGEMAP, "rb", buffering=0) as pagemap, open(_MAPS, "rb") as maps:  # noqa: PTH123
            for begin, end in _read_only(maps):
                if not _is_written_to(begin, end, pagemap.fileno()):
                    _madvise(begin, end - begin, mmap.MADV_DONTNEED)
    except OSError:
        return


def _read_only(maps: Iterable[bytes]) -> list[tuple[int, int]]:
    """Return begin and end of the parts of code that are mapped private and read-only."""
    program = os.fsencode(Path("/proc/self/exe").readlink())  # it may have the interpreter in it
    parts = []
    for line in maps:
        where, access, _, _, _, *file = line.rstrip().split(maxsplit=5)
        is_code = bool(file) and (b".so" in file[0] or file[0] == program)
        if is_code and access.startswith(b"r-") and access.endswith(b"p"):
            begin, _, end = where.partition(b"-")
            parts.append((int(begin, 16), int(end, 16)))
    return parts


def _is_written_to(begin: int, end: int, pagemap: int) -> bool:
    """Whether a page is no longer the file's: code or tables that were relocated, or changed."""
    for first in range(begin, end, _LOOK_BYTES):
        pages = (min(end, first + _LOOK_BYTES) - first) // mmap.PAGESIZE
        entries = os.pread(pagemap, pages * _ENTRY_BYTES, first // mmap.PAGESIZE * _ENTRY_BYTES)
        kinds = set(entries[_BITS_AT::_ENTRY_BYTES])
        if any(kind & _THERE and not kind & _OF_FILE for kind in kinds):
            return True
    return False

"""Keeps the zygote's memory shared with the workers that are forked from it.

A page is a worker's own as soon as the worker writes to it: a reference count is enough. Three
things would write to pages all over the zygote's memory without any need:

    a garbage collection     writes to every object: what is there is frozen
    CPython's type cache     holds names that later ones push out, each in a page of its own
    holes among the objects  every new object goes into one: they are filled, and new objects lie
                             close together in pages that hold nothing else
"""

from __future__ import annotations

import gc
import sys

from edgert.runtime.libraries import let_go_of_libraries

# CPython has pools of equal blocks: 16, 32 ... 512 bytes. No object of bytes fits the first two.
_BLOCK_SIZES = range(48, 513, 16)
# Documented under these names: the first since Python 3.13, which calls the other one outdated.
_clear_type_cache = getattr(sys, "_clear_internal_caches", None) or sys._clear_type_cache  # noqa: SLF001
_BYTES_OVERHEAD = sys.getsizeof(b"")
_IN_A_ROW = 8  # so many blocks one behind the other are no holes: the pool is new
_BLOCKS_AT_MOST = 20_000  # of one size; another allocator may never give neighbours


def settle() -> list[bytes]:
    """Prepare this process to be forked; nothing may be imported afterwards.

    Returns:
        What fills the holes, for as long as it is kept.
    """
    let_go_of_libraries()
    gc.collect()
    _clear_type_cache()
    filling = fill_holes()
    gc.freeze()
    gc.disable()
    return filling


def fill_holes() -> list[bytes]:
    """Fill the free blocks between small objects, until each size gets blocks of a new pool."""
    filling: list[bytes] = []
    for size in _BLOCK_SIZES:
        last = in_a_row = 0
        for _ in range(_BLOCKS_AT_MOST):
            filling.append(bytes(size - _BYTES_OVERHEAD))
            in_a_row = in_a_row + 1 if id(filling[-1]) == last + size else 0
            if in_a_row == _IN_A_ROW:
                break
            last = id(filling[-1])
    return filling

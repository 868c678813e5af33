"""Where mapped memory lies, for drivers that take pointers."""

from __future__ import annotations

import ctypes
import mmap
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
# Each look at an array's interface makes its keys anew and interns them. Nobody keeps some of
# them, so that each look takes a new entry of the interpreter's table: two looks a frame touch 2 MB
# of it in an hour at 20 frames/s, until it is made anew. As long as they are kept here none does.
INTERFACE_KEYS = tuple(np.empty(0).__array_interface__)


def address_of(array: Array) -> int:
    """Return where an array's first element lies."""
    address: int = array.__array_interface__["data"][0]
    return address


def address_of_map(memory: mmap.mmap) -> int:
    """Return the address at which a segment is mapped, also where it is mapped read-only."""
    array: Array = np.frombuffer(memory, np.uint8)
    return int(array.ctypes.data)


def writable_alias(address: int, nbytes: int) -> Array:
    """Return u8 [nbytes] at ``address`` that *claims* to be writable.

    For runtimes whose Python API refuses read-only arrays as inputs though they only read
    (OpenVINO's shared-memory tensors). Over a read-only mapping a write through it would fault.
    """
    raw = (ctypes.c_uint8 * nbytes).from_address(address)
    alias: Array = np.frombuffer(memoryview(raw), np.uint8)
    return alias

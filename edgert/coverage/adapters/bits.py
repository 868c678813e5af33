"""Elements that numpy has not, or keeps in a byte each: between arrays and the bytes in memory.

Types of less than eight bits lie packed in a byte, the first in the lowest bits.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import ml_dtypes
import numpy as np

from edgert.coverage.values import Array

# numpy's name by ml_dtypes -> the type, and its bits.
STRANGE: dict[str, tuple[Any, int]] = {
    "bfloat16": (ml_dtypes.bfloat16, 16),
    "float8_e4m3fn": (ml_dtypes.float8_e4m3fn, 8),
    "float8_e4m3fnuz": (ml_dtypes.float8_e4m3fnuz, 8),
    "float8_e5m2": (ml_dtypes.float8_e5m2, 8),
    "float8_e5m2fnuz": (ml_dtypes.float8_e5m2fnuz, 8),
    "float8_e8m0fnu": (ml_dtypes.float8_e8m0fnu, 8),
    "float4_e2m1fn": (ml_dtypes.float4_e2m1fn, 4),
    "int4": (ml_dtypes.int4, 4),
    "uint4": (ml_dtypes.uint4, 4),
    "int2": (ml_dtypes.int2, 2),
    "uint2": (ml_dtypes.uint2, 2),
}
_BYTE = 8


def pack(array: Array, bits: int) -> bytes:
    """Return the elements of an array as they lie in memory."""
    raw = np.frombuffer(array.tobytes(), np.uint8)
    if bits >= _BYTE:
        return raw.tobytes()
    each = _BYTE // bits
    codes = raw & ((1 << bits) - 1)
    padded = np.zeros(-(-len(codes) // each) * each, np.uint8)
    padded[: len(codes)] = codes
    shifts = np.arange(each, dtype=np.uint8) * bits
    packed: Array = np.bitwise_or.reduce(padded.reshape(-1, each) << shifts, axis=1)
    return packed.astype(np.uint8).tobytes()


def unpack(data: bytes, name: str, shape: Sequence[int]) -> Array:
    """Return an array of a type in ``STRANGE`` from its bytes in memory."""
    dtype, bits = STRANGE[name]
    if bits >= _BYTE:
        return np.frombuffer(data, dtype).reshape(shape).copy()
    shifts = np.arange(_BYTE // bits, dtype=np.uint8) * bits
    codes = (np.frombuffer(data, np.uint8)[:, None] >> shifts) & ((1 << bits) - 1)
    count = int(np.prod(shape, dtype=np.int64))
    elements: Array = codes.ravel()[:count].astype(np.uint8).view(dtype)
    return elements.reshape(shape)

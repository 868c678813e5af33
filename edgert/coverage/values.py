"""Inputs and outputs of a case in a file: arrays of every element type, sequences, absent values.

    values.npz:  | "what": JSON list of entries | "0", "1", ...: the bytes of each array |

An ``.npz`` alone cannot hold bfloat16, the eight- and four-bit floats, or a sequence, and would
hold strings as pickles; nothing here is ever unpickled.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
Value = Array | list[Array] | None
"""A tensor, a sequence of tensors, or nothing (an optional that is empty)."""
Values = Mapping[str, Value]

_TEXT = "text"


class _Entry(msgspec.Struct, frozen=True):
    """One value: its name and, for each array of it, dtype and shape."""

    name: str
    kind: str
    arrays: list[tuple[str, tuple[int, ...]]]


def save(path: Path, values: Values) -> None:
    """Write values to a file."""
    entries, arrays = [], []
    for name, value in values.items():
        each = _arrays_of(value)
        kind = "sequence" if isinstance(value, list) else "none" if value is None else "tensor"
        entries.append(_Entry(name, kind, [(_dtype_name(one), one.shape) for one in each]))
        arrays += each
    what = np.frombuffer(msgspec.json.encode(entries), np.uint8)
    content = {str(number): _bytes_of(array) for number, array in enumerate(arrays)}
    content["what"] = what
    with path.open("wb") as file:
        np.savez(file, allow_pickle=False, **content)


def load(path: Path) -> dict[str, Value]:
    """Read what ``save`` wrote."""
    with np.load(path, allow_pickle=False) as file:
        entries = msgspec.json.decode(file["what"].tobytes(), type=list[_Entry])
        numbers = iter(range(len(file.files)))
        return {entry.name: _value_of(entry, file, numbers) for entry in entries}


def _arrays_of(value: Value) -> list[Array]:
    if value is None:
        return []
    return list(value) if isinstance(value, list) else [np.asarray(value)]


def _dtype_name(array: Array) -> str:
    return _TEXT if array.dtype.kind in "OUS" else array.dtype.name


def _bytes_of(array: Array) -> Array:
    if array.dtype.kind in "OUS":
        texts = [one.decode() if isinstance(one, bytes) else str(one) for one in array.ravel()]
        return np.frombuffer(msgspec.json.encode(texts), np.uint8)
    return np.frombuffer(np.ascontiguousarray(array).tobytes(), np.uint8)


def _value_of(entry: _Entry, file: Mapping[str, Array], numbers: Iterator[int]) -> Value:
    arrays = [
        _array_of(file[str(next(numbers))].tobytes(), dtype, shape) for dtype, shape in entry.arrays
    ]
    if entry.kind == "sequence":
        return arrays
    return arrays[0] if arrays else None


def _array_of(data: bytes, dtype: str, shape: tuple[int, ...]) -> Array:
    if dtype == _TEXT:
        return np.array(msgspec.json.decode(data, type=list[str]), dtype=object).reshape(shape)
    return np.frombuffer(data, _dtype_of(dtype)).reshape(shape).copy()


def _dtype_of(name: str) -> np.dtype[Any]:
    try:
        return np.dtype(name)
    except TypeError:
        import ml_dtypes  # bfloat16 and the small floats; comes with onnx

        found: np.dtype[Any] = np.dtype(getattr(ml_dtypes, name))
        return found

"""From one element type to another."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from edgert.coverage.suites.tflite.variant import (
    QUANTISED,
    Kind,
    Operand,
    Variant,
    data,
    drawn,
    given,
)

_SHAPE = (1, 4, 5, 3)
_CASTS: dict[Kind, tuple[str, ...]] = {
    "f32": ("i32", "i64", "bool", "i8", "u8", "f16"),
    "i32": ("f32", "i64", "bool"),
    "i64": ("f32", "i32"),
    "bool": ("f32", "i32"),
    "u8": ("f32", "i32"),
    "i8": ("f32", "i32"),
    "i16": ("f32", "i32"),
}
_NUMPY = {"u8": np.uint8, "i8": np.int8, "i16": np.int16, "i32": np.int32, "i64": np.int64}


def variants() -> Iterator[Variant]:
    """Yield every variant of this room."""
    yield Variant(
        operator="QUANTIZE",
        name="from-f32",
        operands=(Operand(array=drawn(*_SHAPE), role="float"),),
        formula=_same,
        attributes=("QuantizeOptions", {}),
        kinds=QUANTISED,
        version={"i16": 2},
    )
    yield Variant(
        operator="QUANTIZE",
        name="other-levels",
        operands=(data(*_SHAPE),),
        formula=_same,
        attributes=("QuantizeOptions", {}),
        kinds=QUANTISED,
        levels={"i8": (0.03, 5), "u8": (0.03, 100), "i16": (0.0002, 0)},
        version={"i16": 2},
    )
    yield Variant(
        operator="DEQUANTIZE",
        name="to-f32",
        operands=(data(*_SHAPE),),
        formula=_same,
        attributes=("DequantizeOptions", {}),
        kinds=QUANTISED,
        results=("f32",),
        version={"i8": 2, "i16": 3},
    )
    yield Variant(
        operator="FAKE_QUANT",
        name="eight-bits",
        operands=(data(*_SHAPE),),
        formula=_eight_bits,
        attributes=("FakeQuantOptions", {"min": -1.0, "max": 2.0, "numBits": 8}),
    )
    for kind, targets in _CASTS.items():
        for target in targets:
            yield _cast(kind, target)


def _same(a: Any) -> Any:
    return a


def _cast(kind: Kind, target: str) -> Variant:
    return Variant(
        operator="CAST",
        name=f"to-{target}",
        operands=(given(_values(kind, target)),),
        formula=_same,
        attributes=("CastOptions", {"inDataType": kind, "outDataType": target}),
        kinds=(kind,),
        results=(target,),
        version={kind: 5 if target == "f16" else 3 if "i8" in (kind, target) else 1},
    )


def _values(kind: Kind, target: str) -> Any:
    """Return values that the target can hold: what becomes of others is not defined."""
    wide = drawn(*_SHAPE) * (1 if target == "f16" else 40)
    if kind == "bool":
        return wide > 0
    if kind == "f32":
        return np.abs(wide) if target == "u8" else wide
    return (np.abs(wide) if kind == "u8" else wide).astype(_NUMPY[kind])


def _eight_bits(a: Any) -> Any:
    """Round to 256 levels from -1 to 2, of which zero is the 85th."""
    scale = 3 / 255
    return (np.clip(np.rint(a / scale), -85, 170)) * scale

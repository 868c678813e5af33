"""Operators of one or two tensors, element by element."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from edgert.coverage.suites.tflite.filters import CLAMPS
from edgert.coverage.suites.tflite.variant import (
    ALL_Q,
    BY_TABLE,
    FLOAT,
    Kind,
    Operand,
    Variant,
    data,
    drawn,
    given,
)
from edgert.coverage.values import Array

_INTEGERS: tuple[Kind, ...] = ("i32", "i64")
_SHAPES: dict[str, tuple[tuple[int, ...], tuple[int, ...]]] = {
    "rank-4": ((1, 4, 5, 3), (1, 4, 5, 3)),
    "rank-2": ((4, 6), (4, 6)),
    "channel": ((1, 4, 5, 3), (3,)),
    "scalar": ((1, 4, 5, 3), ()),
    "broadcast-both": ((1, 4, 1, 3), (1, 1, 5, 3)),
}


@dataclass(frozen=True, slots=True)
class _Of:
    """An operator: its formula, the types it has, and what its values may be."""

    formula: Callable[..., Any]
    table: str
    kinds: tuple[Kind, ...]
    low: float = -2.0
    high: float = 2.0
    right_low: float | None = None
    version: Mapping[str, int] = field(default_factory=dict)
    steps: int | Mapping[str, int] = 1


_SECOND = {"i8": 2, "i16": 2}
_ARITHMETIC = (*ALL_Q, *_INTEGERS)
_BINARY = {
    "ADD": _Of(np.add, "AddOptions", _ARITHMETIC, version={"i8": 2, "i16": 3, "i64": 4}),
    "SUB": _Of(np.subtract, "SubOptions", _ARITHMETIC, version={"i8": 2, "i16": 5, "i64": 4}),
    "MUL": _Of(np.multiply, "MulOptions", _ARITHMETIC, version={"i8": 2, "i16": 4, "i64": 5}),
    "DIV": _Of(np.divide, "DivOptions", ("f32", "u8", "i32"), right_low=0.5),
    "POW": _Of(np.power, "PowOptions", ("f32", "i32"), low=0.25),
    "SQUARED_DIFFERENCE": _Of(
        lambda a, b: (a - b) ** 2,
        "SquaredDifferenceOptions",
        ("f32", "i8", "i32"),
        version={"i8": 2},
    ),
    "FLOOR_DIV": _Of(
        lambda a, b: np.floor(a / b),
        "FloorDivOptions",
        ("f32", "i32"),
        right_low=0.5,
        version={"f32": 2},
    ),
    "FLOOR_MOD": _Of(np.mod, "FloorModOptions", ("f32", *_INTEGERS), right_low=0.5),
}
_FUSED = {
    "ADD": ("RELU", "RELU6", "RELU_N1_TO_1"),
    "SUB": ("RELU",),
    "MUL": ("RELU", "RELU6"),
    "DIV": ("RELU",),
}
_UNARY = {
    "ABS": _Of(np.abs, "AbsOptions", ("f32", "i8", "i16", "i32"), version={"i8": 2, "i16": 3}),
    "NEG": _Of(np.negative, "NegOptions", ("f32", *_INTEGERS)),
    "SQUARE": _Of(np.square, "SquareOptions", FLOAT),
    "SQRT": _Of(np.sqrt, "", FLOAT, low=0.1),
    "RSQRT": _Of(
        lambda a: a**-0.5,
        "",
        ("f32", "i8", "i16"),
        low=0.5,
        version={"i8": 2, "i16": 3},
        steps=BY_TABLE,
    ),
    "EXP": _Of(np.exp, "ExpOptions", ("f32", "i8", "i16"), version=_SECOND, steps=BY_TABLE),
    "LOG": _Of(np.log, "", ("f32", "i8", "i16"), low=0.5, version=_SECOND, steps=BY_TABLE),
    "SIN": _Of(np.sin, "", FLOAT),
    "COS": _Of(np.cos, "CosOptions", FLOAT),
    "FLOOR": _Of(np.floor, "", FLOAT),
    "CEIL": _Of(np.ceil, "", FLOAT),
    "ROUND": _Of(np.rint, "", FLOAT),
    "SIGN": _Of(np.sign, "SignOptions", FLOAT),
}
_LOGICAL = {"LOGICAL_AND": np.logical_and, "LOGICAL_OR": np.logical_or}
_BITS = {"BITWISE_XOR": np.bitwise_xor, "RIGHT_SHIFT": np.right_shift}


def variants() -> Iterator[Variant]:
    """Yield every variant of this room."""
    for operator, of in _BINARY.items():
        for name, (left, right) in _SHAPES.items():
            yield _two(operator, of, name, left, right)
        for act in _FUSED.get(operator, ()):
            yield _two(operator, of, act.lower().replace("_", "-"), *_SHAPES["rank-4"], act)
        if operator in _FUSED:
            yield _constant(operator, of)
    for operator, of in _UNARY.items():
        for name, shape in (("rank-4", (1, 4, 5, 3)), ("rank-1", (24,))):
            yield _one(operator, of, name, shape)
    yield from _of_bits()
    yield _sum_of_many()


def _fields(operator: str, act: str) -> dict[str, Any]:
    if operator not in _FUSED:
        return {}
    # The scales of 16 bits are not powers of two here, as no converter's are any longer.
    powers = {"potScaleInt16": False} if operator in ("ADD", "SUB") else {}
    return {"fusedActivationFunction": act, **powers}


def _operands(of: _Of, left: tuple[int, ...], right: tuple[int, ...]) -> tuple[Operand, Operand]:
    low = of.low if of.right_low is None else of.right_low
    array = drawn(*right, low=low, high=of.high, salt="right")
    # Scalars are constants in real models, and some devices take them only so.
    return data(*left, low=of.low, high=of.high), Operand(array=array, constant=not right)


def _two(
    operator: str,
    of: _Of,
    name: str,
    left: tuple[int, ...],
    right: tuple[int, ...],
    act: str = "NONE",
) -> Variant:
    return Variant(
        operator=operator,
        name=name,
        operands=_operands(of, left, right),
        formula=lambda a, b: np.clip(of.formula(a, b), *CLAMPS[act]),
        attributes=(of.table, _fields(operator, act)),
        kinds=of.kinds,
        steps=of.steps,
        version=of.version,
    )


def _constant(operator: str, of: _Of) -> Variant:
    """Return a variant whose second operand is part of the file, as biases and scales are."""
    left, right = _operands(of, *_SHAPES["channel"])
    constant = Operand(array=right.array, constant=True)
    return Variant(
        operator=operator,
        name="constant",
        operands=(left, constant),
        formula=of.formula,
        attributes=(of.table, _fields(operator, "NONE")),
        kinds=of.kinds,
        steps=of.steps,
        version=of.version,
    )


def _one(operator: str, of: _Of, name: str, shape: tuple[int, ...]) -> Variant:
    return Variant(
        operator=operator,
        name=name,
        operands=(data(*shape, low=of.low, high=of.high),),
        formula=of.formula,
        attributes=(of.table, {}),
        kinds=of.kinds,
        steps=of.steps,
        version=of.version,
    )


def _of_bits() -> Iterator[Variant]:
    yes, no = drawn(1, 4, 5, 3) > 0, drawn(1, 4, 5, 3, salt="right") > 0
    for operator, logical in _LOGICAL.items():
        table = f"{operator.title().replace('_', '')}Options"
        for name, right in (("rank-4", no), ("channel", no[0, 0, 0])):
            yield _plain(operator, name, (yes, right), logical, table, "bool")
    yield _plain("LOGICAL_NOT", "rank-4", (yes,), np.logical_not, "LogicalNotOptions", "bool")
    left = (drawn(4, 6) * 20).astype(np.int32)
    shift = np.arange(24, dtype=np.int32).reshape(4, 6) % 5
    for operator, each in _BITS.items():
        table = {"BITWISE_XOR": "BitwiseXorOptions", "RIGHT_SHIFT": "RightShiftOptions"}[operator]
        yield _plain(operator, "rank-2", (left, shift), each, table, "i32")


def _plain(
    operator: str,
    name: str,
    arrays: tuple[Array, ...],
    formula: Callable[..., Any],
    table: str,
    kind: Kind,
) -> Variant:
    return Variant(
        operator=operator,
        name=name,
        operands=tuple(map(given, arrays)),
        formula=formula,
        attributes=(table, {}),
        kinds=(kind,),
        results=(kind,),
    )


def _sum_of_many() -> Variant:
    return Variant(
        operator="ADD_N",
        name="three",
        operands=(data(2, 6), data(2, 6, salt="b"), data(2, 6, salt="c")),
        formula=lambda a, b, c: a + b + c,
        attributes=("AddNOptions", {}),
        kinds=("f32", "i32"),
    )

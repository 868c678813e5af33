"""One operator in one variant: its operands, its attributes, and what it computes."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from edgert.coverage.values import Array

Role = Literal["data", "weights", "bias", "as-is", "float", "state"]
Kind = Literal["f32", "i8", "u8", "i16", "i32", "i64", "bool"]
Levels = tuple[float, int]
"""Scale and zero point."""

QUANTISED: tuple[Kind, ...] = ("i8", "u8", "i16")
FLOAT: tuple[Kind, ...] = ("f32",)
Q8: tuple[Kind, ...] = ("f32", "i8", "u8")
ALL_Q: tuple[Kind, ...] = ("f32", "i8", "u8", "i16")
MOVED: tuple[Kind, ...] = (*ALL_Q, "i32")
BY_TABLE: Mapping[str, int] = {"i16": 4}
"""Levels of functions that TFLite's definition of 16 bits takes from a table of 513 places."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Operand:
    """One input of an operator.

    Attributes:
        array: Its values, as real numbers.
        role: ``data`` and ``weights`` take the type of the case, ``bias`` that which TFLite pairs
            with it; ``as-is`` keeps its own, ``float`` stays f32; ``state`` is kept in between.
        constant: Whether it is part of the file.
        axis: Of weights, the axis whose slices have a scale of their own in int8.
    """

    array: Array
    role: Role = "data"
    constant: bool = False
    axis: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Variant:
    """One operator in one variant, for all its element types.

    Attributes:
        operator: As TFLite's schema names it.
        name: What is special in this variant.
        operands: Its inputs; None for an optional one that is absent.
        formula: From operands, as real numbers, to results.
        attributes: Table of the schema and its fields; words stand for enumerations.
        kinds: Element types it is put in.
        results: Type of each result; empty: that of the case.
        levels: Scale and zero point of results: ``own`` fits their range, ``input`` is that of the
            first operand, which all operands then share; or what TFLite prescribes for a type.
        steps: Levels by which a quantised result may be off: its kernels round more than once.
            By type where a type allows more, 1 for the others.
        version: Of the operator by type, where not 1.
    """

    operator: str
    name: str
    operands: tuple[Operand | None, ...]
    formula: Callable[..., Any]
    attributes: tuple[str, Mapping[str, Any]] = ("", {})
    kinds: tuple[Kind, ...] = FLOAT
    results: tuple[str, ...] = ("",)
    levels: Literal["own", "input"] | Mapping[str, Levels] = "own"
    steps: int | Mapping[str, int] = 1
    version: Mapping[str, int] = field(default_factory=dict)

    def allowed(self, kind: Kind) -> int:
        """Return the levels by which a quantised result of a type may be off."""
        return self.steps if isinstance(self.steps, int) else self.steps.get(kind, 1)

    def case(self, kind: Kind) -> str:
        """Return the name of the case in a type."""
        return f"{self.operator.lower()}_{self.name}_{kind}".replace("-", "_")


def drawn(*shape: int, low: float = -2.0, high: float = 2.0, salt: str = "") -> Array:
    """Return values that are the same in every run."""
    random = np.random.default_rng(zlib.crc32(f"{shape}{low}{high}{salt}".encode()))
    return random.uniform(low, high, shape).astype(np.float32)


def data(*shape: int, low: float = -2.0, high: float = 2.0, salt: str = "") -> Operand:
    """Return an input of drawn values."""
    return Operand(array=drawn(*shape, low=low, high=high, salt=salt))


def fixed(value: Any, dtype: Any = np.int32) -> Operand:
    """Return a parameter that is part of the file: axes, sizes, indices."""
    return Operand(array=np.asarray(value, dtype), role="as-is", constant=True)


def given(array: Array) -> Operand:
    """Return an input that keeps its own type."""
    return Operand(array=array, role="as-is")


def moves(  # noqa: PLR0913  what a variant is made of
    operator: str,
    name: str,
    operands: tuple[Operand, ...],
    formula: Callable[..., Any],
    table: str = "",
    fields: Mapping[str, Any] | None = None,
    *,
    results: tuple[str, ...] = ("",),
    version: Mapping[str, int] | None = None,
    kinds: tuple[Kind, ...] = MOVED,
) -> Variant:
    """Return a variant of an operator that computes nothing: results have the operand's levels."""
    return Variant(
        operator=operator,
        name=name,
        operands=operands,
        formula=formula,
        attributes=(table, fields or {}),
        kinds=kinds,
        results=results,
        levels="input",
        steps=0,
        version=version or {},
    )

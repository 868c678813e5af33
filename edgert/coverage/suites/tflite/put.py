"""A variant in one element type: the levels of quantised tensors, and what is expected of it.

Operands are rounded to their levels first; the formula is applied to what the levels stand for, and
its result rounded to the levels of the result. So a quantised case is judged by the arithmetic
alone, never by what quantisation loses.
"""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np

from edgert.coverage.suites.tflite.variant import QUANTISED, Kind, Operand, Variant
from edgert.coverage.values import Array
from edgert.tensor import DTYPES

_LIMITS = {"i8": (-128, 127), "u8": (0, 255), "i16": (-32767, 32767)}
# Of results over their range: tables that TFLite interpolates in are cut off where levels end.
_HEADROOM = 1.02
_WIDENING = 4.0
"""Integers that are not levels: the real values by this, so that they differ enough."""


class Scales(msgspec.Struct, frozen=True):
    """How levels stand for real numbers: one scale, or one for each slice along an axis."""

    scale: Any
    zero: Any
    axis: int = 0

    def real(self, levels: Array) -> Array:
        """Return what levels stand for."""
        made: Array = (levels.astype(np.float64) - self._along(self.zero, levels)) * self._along(
            self.scale, levels
        )
        return made

    def rounded(self, real: Array, dtype: str) -> Array:
        """Return the nearest levels."""
        found = np.rint(real / self._along(self.scale, real)) + self._along(self.zero, real)
        limits = _LIMITS.get(dtype, (-(2**31), 2**31 - 1))
        levels: Array = np.clip(found, *limits).astype(DTYPES[dtype])
        return levels

    def _along(self, each: Array, array: Array) -> Array:
        if len(each) == 1:
            return np.asarray(each[0], np.float64)
        shape = [-1 if axis == self.axis else 1 for axis in range(array.ndim)]
        return np.asarray(each, np.float64).reshape(shape)


class Tensor(msgspec.Struct, frozen=True, kw_only=True):
    """One tensor of the file.

    Attributes:
        dtype: Our name of its type.
        array: Its values, as they lie in memory.
        constant: Whether they are part of the file.
        is_state: Whether they are kept between inferences, zero at first.
        scales: Of levels; None for real numbers and plain integers.
    """

    dtype: str
    array: Array
    constant: bool = False
    is_state: bool = False
    scales: Scales | None = None

    @property
    def real(self) -> Array:
        """What the values stand for."""
        if self.scales is not None:
            return self.scales.real(self.array)
        return self.array.astype(np.float64) if self.array.dtype.kind == "f" else self.array


class Put(msgspec.Struct, frozen=True):
    """A variant in one type: its tensors, absent ones None, and the expected results."""

    inputs: tuple[Tensor | None, ...]
    outputs: tuple[Tensor, ...]


def put(variant: Variant, kind: Kind) -> Put:
    """Return a variant in one of its types."""
    is_quantised = kind in QUANTISED
    shared = _shared(variant, kind) if is_quantised else None
    inputs: list[Tensor | None] = []
    for operand in variant.operands:
        inputs.append(None if operand is None else _input(operand, kind, shared, inputs))
    given = [tensor.real for tensor in inputs if tensor is not None]
    with np.errstate(all="ignore"):
        found = variant.formula(*given)
    results = found if isinstance(found, tuple) else (found,)
    outputs = tuple(
        _output(np.asarray(real), dtype or kind, variant, shared)
        for real, dtype in zip(results, variant.results, strict=True)
    )
    return Put(tuple(inputs), outputs)


def _shared(variant: Variant, kind: Kind) -> Scales | None:
    """Return the one scale of a variant that must have only one; None for scales of their own."""
    if variant.levels != "input":
        return None
    arrays = [each.array for each in variant.operands if each is not None and each.role == "data"]
    return _fitting(np.concatenate([array.ravel() for array in arrays]), kind)


def _input(
    operand: Operand, kind: Kind, shared: Scales | None, before: list[Tensor | None]
) -> Tensor:
    constant = operand.constant
    if operand.role == "as-is":
        return Tensor(dtype=_ours(operand.array), array=operand.array, constant=constant)
    if operand.role in ("float", "state") or kind == "f32":
        array = operand.array.astype(np.float32)
        state = operand.role == "state"
        return Tensor(dtype="f32", array=array, constant=constant, is_state=state)
    if kind not in QUANTISED:
        array = np.rint(operand.array * _WIDENING).astype(DTYPES[kind])
        return Tensor(dtype=kind, array=array, constant=constant)
    if operand.role == "bias":
        return _bias(operand, kind, before)
    dtype = "i8" if operand.role == "weights" and kind == "i16" else kind
    if operand.role == "weights" and dtype == "i8":
        scales = _symmetric(operand)
    else:
        scales = shared or _fitting(operand.array, dtype)
    levels = scales.rounded(operand.array, dtype)
    return Tensor(dtype=dtype, array=levels, constant=constant, scales=scales)


def _bias(operand: Operand, kind: Kind, before: list[Tensor | None]) -> Tensor:
    """Return a bias in the levels of products: of the scale of the input and of the weights."""
    factors = [each.scales.scale for each in before if each is not None and each.scales]
    scale = np.multiply(*factors)
    scales = Scales(scale, np.zeros(len(scale), np.int64))
    dtype = "i64" if kind == "i16" else "i32"
    levels = scales.rounded(operand.array, dtype)
    return Tensor(dtype=dtype, array=levels, constant=True, scales=scales)


def _output(real: Array, dtype: str, variant: Variant, shared: Scales | None) -> Tensor:
    if dtype not in QUANTISED or variant.operator == "CAST":
        return Tensor(dtype=dtype, array=real.astype(DTYPES[dtype]))
    scales = shared or _own(real, dtype, variant)
    return Tensor(dtype=dtype, array=scales.rounded(real, dtype), scales=scales)


def _own(real: Array, dtype: str, variant: Variant) -> Scales:
    if isinstance(variant.levels, str):
        return _fitting(real * _HEADROOM, dtype)
    scale, zero = variant.levels[dtype]
    return Scales([scale], [zero])


def _fitting(real: Array, dtype: str) -> Scales:
    """Return levels that reach over all values and zero; of 16 bits with the zero in the middle."""
    low, high = min(float(real.min()), 0.0), max(float(real.max()), 0.0)
    if dtype == "i16":
        return Scales([_single(max(-low, high, 1e-6) / 32767)], [0])
    least, most = _LIMITS[dtype]
    scale = _single(max(high - low, 1e-6) / (most - least))
    return Scales([scale], [int(np.clip(np.rint(least - low / scale), least, most))])


def _symmetric(operand: Operand) -> Scales:
    """Return levels of weights: zero in the middle, a scale for each slice where asked."""
    if operand.axis is None:
        scale = [_single(float(np.abs(operand.array).max()) / 127)]
    else:
        others = tuple(each for each in range(operand.array.ndim) if each != operand.axis)
        scale = [_single(each / 127) for each in np.abs(operand.array).max(others)]
    return Scales(scale, [0] * len(scale), operand.axis or 0)


def _single(scale: float) -> float:
    """Return a scale as the file keeps it, in f32."""
    return float(np.float32(scale))


def _ours(array: Array) -> str:
    return next(ours for ours, theirs in DTYPES.items() if theirs == array.dtype.name)

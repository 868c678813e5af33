"""Floats rounded as an accelerator of few bits would have them; the arrays keep their type."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np

from edgert.backends.base import Targets
from edgert.transport.address import Array


def round_all(arrays: Iterable[Array], precision: str | None) -> None:
    """Round every array of floats in place; None leaves them."""
    if precision is None:
        return
    for array in arrays:
        if array.dtype.kind == "f":
            array[...] = _ROUNDINGS[precision](array.astype(np.float32))


def rounding(precision: str) -> Callable[[int, Targets], None]:
    """Return what rounds the outputs of an inference, whose number does not matter."""

    def round_outputs(_: int, outputs: Targets) -> None:
        round_all((each for each in outputs.values() if isinstance(each, np.ndarray)), precision)

    return round_outputs


def _as_is(values: Array) -> Array:
    return values


def _f16(values: Array) -> Array:
    with np.errstate(over="ignore"):  # what is too large becomes infinite there, too
        return values.astype(np.float16)


def _bf16(values: Array) -> Array:
    """Keep the upper half of each f32, to nearest, ties to even."""
    bits = values.view(np.uint32)
    rounded = (bits + np.uint32(0x7FFF) + ((bits >> np.uint32(16)) & np.uint32(1))) & np.uint32(
        0xFFFF0000
    )
    return np.where(np.isfinite(values), rounded.view(np.float32), values)


def _i8(values: Array) -> Array:
    """Keep 255 steps, symmetric around 0, up to the largest value of the tensor."""
    finite = np.abs(values[np.isfinite(values)])
    scale = finite.max(initial=0.0) / 127
    return (values / scale).round() * scale if scale > 0 else values


_ROUNDINGS = {"f32": _as_is, "f16": _f16, "bf16": _bf16, "i8": _i8}
ITEM_BYTES = {"f32": 4, "f16": 2, "bf16": 2, "i8": 1}

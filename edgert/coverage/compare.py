"""How near outputs are to their reference: equal within a tolerance, or differing by how much."""

from __future__ import annotations

from typing import Any, NamedTuple

import msgspec
import numpy as np

from edgert.coverage.record import Numerics
from edgert.coverage.values import Array, Value, Values

# Relative and absolute tolerance by element type: what rounding alone explains. A suite may allow
# more, never less.
TOLERANCE: dict[str, tuple[float, float]] = {
    "float64": (1e-7, 1e-9),
    "float32": (1e-3, 1e-6),
    "float16": (1e-2, 1e-3),
    "bfloat16": (5e-2, 1e-2),
}
_SMALL_FLOATS = (0.13, 1e-2)  # eight bits and less: one step of three bits of mantissa
_EXACT = (0.0, 0.0)


def tolerance_of(precision: str) -> tuple[float, float]:
    """Return what rounding to a precision explains (``f16``, ``bf16``); none for any other."""
    names = {"f16": "float16", "bf16": "bfloat16"}
    return TOLERANCE[names[precision]] if precision in names else _EXACT


class Tolerance(NamedTuple):
    """What is allowed beyond the element type's own tolerance.

    Attributes:
        rtol: Of real numbers, relative.
        atol: Of real numbers, absolute.
        steps: Of integers: where they are levels, how many of them rounding explains.
    """

    rtol: float = 0.0
    atol: float = 0.0
    steps: int = 0


class Difference(msgspec.Struct, frozen=True):
    """What a comparison found.

    Attributes:
        numerics: ``equal`` or ``differs``.
        max_error: Largest absolute difference of all numbers; None where none were compared.
        mean_error: Mean absolute difference of all numbers.
        reason: What differs, empty where nothing does.
    """

    numerics: Numerics
    max_error: float | None = None
    mean_error: float | None = None
    reason: str = ""


def compare(
    expected: Values, actual: Values, rtol: float = 0.0, atol: float = 0.0, steps: int = 0
) -> Difference:
    """Compare outputs with their reference.

    Args:
        expected: The reference.
        actual: What came out; it may have more than the reference.
        rtol: Relative tolerance, if more than the element type's own.
        atol: Absolute tolerance, if more than the element type's own.
        steps: Of integers that are levels, by how many they may be off.
    """
    allowed = Tolerance(rtol, atol, steps)
    found = [_compare_one(name, expected[name], actual, allowed) for name in expected]
    wrong = [each.reason for each in found if each.reason]
    errors = [each for each in found if each.max_error is not None]
    return Difference(
        "differs" if wrong else "equal",
        max((each.max_error or 0.0 for each in errors), default=None),
        float(np.mean([each.mean_error or 0.0 for each in errors])) if errors else None,
        "; ".join(wrong),
    )


def _compare_one(name: str, expected: Value, actual: Values, allowed: Tolerance) -> Difference:
    if name not in actual:
        return Difference("differs", reason=f"output '{name}' is missing")
    got = actual[name]
    if expected is None or got is None:
        same = expected is None and got is None
        return Difference(
            "equal" if same else "differs", reason="" if same else _absence(name, got)
        )
    left = expected if isinstance(expected, list) else [expected]
    right = got if isinstance(got, list) else [got]
    if isinstance(expected, list) != isinstance(got, list) or len(left) != len(right):
        return Difference(
            "differs", reason=f"output '{name}' has {len(right)} of {len(left)} parts"
        )
    parts = [_compare_arrays(name, a, b, allowed) for a, b in zip(left, right, strict=True)]
    return max(parts, key=_badness, default=Difference("equal"))


def _absence(name: str, got: Value) -> str:
    return f"output '{name}' is {'empty' if got is None else 'not empty'}"


def _badness(difference: Difference) -> tuple[bool, float]:
    return bool(difference.reason), difference.max_error or 0.0


def _compare_arrays(name: str, expected: Array, actual: Array, allowed: Tolerance) -> Difference:
    actual = np.asarray(actual)
    if actual.shape != expected.shape:
        said = f"output '{name}' is {list(actual.shape)}, not {list(expected.shape)}"
        return Difference("differs", reason=said)
    if expected.dtype.kind in "OUS" or actual.dtype.kind in "OUS":
        same = bool(np.all(expected.astype(str) == actual.astype(str)))
        return Difference(
            "equal" if same else "differs", reason="" if same else f"'{name}' differs"
        )
    if actual.dtype != expected.dtype:
        said = f"output '{name}' is {actual.dtype.name}, not {expected.dtype.name}"
        return Difference("differs", reason=said)
    return _compare_numbers(name, expected, actual, allowed)


def _compare_numbers(name: str, expected: Array, actual: Array, allowed: Tolerance) -> Difference:
    if not expected.size:
        return Difference("equal", 0.0, 0.0)
    own = _tolerance(expected.dtype, allowed)
    with np.errstate(all="ignore"):
        left, right = _wide(expected), _wide(actual)
        same = (left == right) | (np.isnan(left) & np.isnan(right))
        error = np.where(same, 0.0, np.abs(left - right))
        near = error <= own[1] + own[0] * np.abs(left)
        within = same | (near & np.isfinite(error))
        finite = error[np.isfinite(error)]
    largest = float(finite.max(initial=0.0))
    mean = float(finite.mean()) if finite.size else 0.0
    bad = int(within.size - np.count_nonzero(within))
    said = f"{bad} of {within.size} values of '{name}' differ" if bad else ""
    return Difference("differs" if bad else "equal", largest, mean, said)


def _tolerance(dtype: np.dtype[Any], allowed: Tolerance) -> tuple[float, float]:
    if dtype.kind == "b":
        return _EXACT
    if dtype.kind in "iu" or dtype.name.startswith(("int", "uint")):
        return 0.0, float(allowed.steps)
    own = TOLERANCE.get(dtype.name.replace("complex64", "float32"), _SMALL_FLOATS)
    return max(own[0], allowed.rtol), max(own[1], allowed.atol)


def _wide(array: Array) -> Array:
    if array.dtype.kind == "c":
        return array.astype(np.complex128)
    if array.dtype.kind in "iub":
        return array.astype(np.longdouble)  # 64-bit integers are exact in it
    return array.astype(np.float64)

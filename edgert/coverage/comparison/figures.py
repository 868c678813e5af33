"""How near two tensors are, in the figures that people who quantise and port networks know."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import numpy as np

from edgert.coverage.compare import compare
from edgert.coverage.comparison.record import Figures
from edgert.coverage.record import Numerics
from edgert.coverage.run import rounded
from edgert.coverage.values import Array, Value, Values

# The worst last: of several samples the worst one counts.
_ORDER: tuple[Numerics, ...] = (
    "not-run",
    "equal",
    "differs",
    "unsupported",
    "error",
    "timed-out",
    "crashed",
)


def measure(name: str, expected: Value, actual: Values, rtol: float, atol: float) -> Figures:
    """Compare one tensor.

    Args:
        name: Its name.
        expected: The reference's.
        actual: All that the candidate gave.
        rtol: See ``compare``.
        atol: See ``compare``.
    """
    # Of integers the tolerance is in whole steps.
    found = compare({name: expected}, actual, rtol, atol, int(atol))
    cosine, snr_db = _cosine_and_snr(expected, actual.get(name))
    return Figures(
        tensor=name,
        numerics=found.numerics,
        cosine=None if cosine is None else round(cosine, 8),
        max_error=rounded(found.max_error),
        mean_error=rounded(found.mean_error),
        snr_db=None if snr_db is None else round(snr_db, 2),
        reason=found.reason,
    )


def measure_all(expected: Values, actual: Values, rtol: float, atol: float) -> list[Figures]:
    """Compare every tensor of the reference."""
    return [measure(name, value, actual, rtol, atol) for name, value in expected.items()]


def worst_of(found: Sequence[Figures]) -> Figures:
    """Return the worst of each figure over several samples of one output."""
    worst = max(found, key=lambda each: (_ORDER.index(each.numerics), each.max_error or 0.0))
    means = [each.mean_error for each in found if each.mean_error is not None]
    return Figures(
        tensor=worst.tensor,
        numerics=worst.numerics,
        cosine=_least(each.cosine for each in found),
        max_error=max(
            (each.max_error for each in found if each.max_error is not None), default=None
        ),
        mean_error=rounded(sum(means) / len(means)) if means else None,
        snr_db=_least(each.snr_db for each in found),
        reason=worst.reason,
    )


def worse(one: Numerics, other: Numerics) -> Numerics:
    """Return the worse of two answers."""
    return max(one, other, key=_ORDER.index)


def noise_db(figures: Figures) -> float:
    """Return noise to signal; minus infinity where there is no noise."""
    if figures.snr_db is not None:
        return -figures.snr_db
    return math.inf if figures.numerics == "differs" else -math.inf


def _least(found: Iterable[float | None]) -> float | None:
    return min((each for each in found if each is not None), default=None)


def _cosine_and_snr(expected: Value, actual: Value) -> tuple[float | None, float | None]:
    if not (isinstance(expected, np.ndarray) and isinstance(actual, np.ndarray)):
        return None, None
    if expected.shape != actual.shape or not (_is_real(expected) and _is_real(actual)):
        return None, None
    with np.errstate(all="ignore"):
        left = expected.astype(np.float64).ravel()
        right = actual.astype(np.float64).ravel()
        whole = np.isfinite(left) & np.isfinite(right)
        if not whole.all():
            left, right = left[whole], right[whole]
        signal, power = float(left @ left), float(right @ right)
        noise = float(np.square(left - right).sum())
        both = math.sqrt(signal) * math.sqrt(power)
        cosine = min(1.0, float(left @ right) / both) if both > 0 else None
    return cosine, 10 * math.log10(signal / noise) if noise > 0 and signal > 0 else None


def _is_real(array: Array) -> bool:
    return array.dtype.kind in "biuf" or array.dtype.name.startswith(
        ("bfloat", "float", "int", "uint")
    )

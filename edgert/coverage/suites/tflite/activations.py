"""Activations and normalisation."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from math import erf
from typing import Any

import numpy as np

from edgert.coverage.suites.tflite.filters import CLAMPS
from edgert.coverage.suites.tflite.variant import (
    ALL_Q,
    BY_TABLE,
    FLOAT,
    Q8,
    Kind,
    Levels,
    Operand,
    Variant,
    data,
    drawn,
)
from edgert.coverage.values import Array

# What TFLite prescribes for results that are probabilities, or lie between -1 and 1.
_PROBABILITY: Mapping[str, Levels] = {
    "i8": (1 / 256, -128),
    "u8": (1 / 256, 0),
    "i16": (1 / 32768, 0),
}
_SIGNED: Mapping[str, Levels] = {"i8": (1 / 128, 0), "u8": (1 / 128, 128), "i16": (1 / 32768, 0)}
_LOGARITHM: Mapping[str, Levels] = {"i8": (16 / 256, 127), "u8": (16 / 256, 255)}
_NEWER = {"i8": 2, "i16": 3}


def variants() -> Iterator[Variant]:
    """Yield every variant of this room."""
    for name, shape in (("rank-4", (1, 4, 5, 3)), ("rank-2", (3, 10))):
        yield from _of_elements(name, shape)
    yield from _softmax()
    yield from _with_slopes()
    yield from _normalisations()


def _of_elements(name: str, shape: tuple[int, ...]) -> Iterator[Variant]:
    wide = data(*shape, low=-8.0, high=8.0)
    for operator in ("RELU", "RELU6", "RELU_N1_TO_1", "RELU_0_TO_1"):
        limits = CLAMPS.get(operator, (0.0, 1.0))
        kinds = ALL_Q if operator in ("RELU", "RELU6") else Q8

        def clamp(a: Array, limits: tuple[float, float] = limits) -> Array:
            return np.clip(a, *limits)

        version = _NEWER if operator in ("RELU", "RELU6") else {}
        yield _variant(operator, name, wide, clamp, kinds, version=version)
    yield _variant("LOGISTIC", name, wide, _logistic, ALL_Q, levels=_PROBABILITY, version=_NEWER)
    yield _variant("TANH", name, wide, np.tanh, ALL_Q, levels=_SIGNED, version=_NEWER)
    yield _variant("ELU", name, wide, lambda a: np.where(a < 0, np.expm1(a), a), ("f32", "i8"))
    yield _variant("HARD_SWISH", name, wide, _hard_swish, Q8, table="HardSwishOptions")
    for approximate in (False, True):
        yield _variant(
            "GELU",
            f"{name}{'-approximate' if approximate else ''}",
            wide,
            _gelu_by_tanh if approximate else _gelu,
            Q8,
            table="GeluOptions",
            fields={"approximate": approximate},
            version={"i8": 2, "u8": 2},
        )
    for slope in (0.1, 1.5):
        yield _variant(
            "LEAKY_RELU",
            f"{name}-{slope:g}",
            wide,
            lambda a, slope=slope: np.where(a < 0, a * slope, a),
            ALL_Q,
            table="LeakyReluOptions",
            fields={"alpha": slope},
            version={"i16": 2},
        )


def _variant(  # noqa: PLR0913  what a variant is made of
    operator: str,
    name: str,
    operand: Operand,
    formula: Callable[..., Any],
    kinds: tuple[Kind, ...],
    *,
    table: str = "",
    fields: Mapping[str, Any] | None = None,
    levels: Mapping[str, Levels] | None = None,
    version: Mapping[str, int] | None = None,
) -> Variant:
    return Variant(
        operator=operator,
        name=name,
        operands=(operand,),
        formula=formula,
        attributes=(table, fields or {}),
        kinds=kinds,
        levels=levels or "own",
        steps=BY_TABLE,
        version=version or {},
    )


def _softmax() -> Iterator[Variant]:
    for name, shape, beta in (
        ("rank-2", (2, 10), 1.0),
        ("rank-4", (1, 4, 5, 6), 1.0),
        ("beta-0.5", (2, 10), 0.5),
        ("rank-1", (10,), 1.0),
    ):
        yield _variant(
            "SOFTMAX",
            name,
            data(*shape, low=-4.0, high=4.0),
            lambda a, beta=beta: _shares(a * beta),
            ALL_Q,
            table="SoftmaxOptions",
            fields={"beta": beta},
            levels=_PROBABILITY,
            version=_NEWER,
        )
    for name, shape in (("rank-2", (2, 10)), ("rank-4", (1, 4, 5, 6))):
        yield _variant(
            "LOG_SOFTMAX",
            name,
            data(*shape, low=-4.0, high=4.0),
            lambda a: np.log(_shares(a)),
            Q8,
            table="LogSoftmaxOptions",
            levels=_LOGARITHM,
            version=_NEWER,
        )


def _with_slopes() -> Iterator[Variant]:
    for name, shape in (("channel", (1, 1, 3)), ("whole", (4, 5, 3))):
        slopes = Operand(array=drawn(*shape, low=0.05, high=0.4), constant=True)
        yield Variant(
            operator="PRELU",
            name=name,
            operands=(data(1, 4, 5, 3), slopes),
            formula=lambda a, slope: np.where(a < 0, a * slope, a),
            kinds=Q8,
        )


def _normalisations() -> Iterator[Variant]:
    for name, shape in (("rank-4", (1, 4, 5, 6)), ("rank-2", (3, 8))):
        yield _variant(
            "L2_NORMALIZATION",
            name,
            data(*shape),
            lambda a: a / np.sqrt((a**2).sum(-1, keepdims=True)),
            Q8,
            table="L2NormOptions",
            levels=_SIGNED,
            version=_NEWER,
        )
    fields = {"radius": 2, "bias": 1.0, "alpha": 0.5, "beta": 0.75}
    yield _variant(
        "LOCAL_RESPONSE_NORMALIZATION",
        "radius-2",
        data(1, 4, 5, 8),
        _local_response,
        FLOAT,
        table="LocalResponseNormalizationOptions",
        fields=fields,
    )


def _logistic(a: Array) -> Array:
    return 1 / (1 + np.exp(-a))


def _hard_swish(a: Any) -> Any:
    return a * np.clip(a + 3, 0, 6) / 6


def _gelu(a: Any) -> Any:
    return a * 0.5 * (1 + np.vectorize(erf)(a / np.sqrt(2)))


def _gelu_by_tanh(a: Any) -> Any:
    return a * 0.5 * (1 + np.tanh(np.sqrt(2 / np.pi) * (a + 0.044715 * a**3)))


def _shares(a: Array) -> Array:
    raised = np.exp(a - a.max(-1, keepdims=True))
    shares: Array = raised / raised.sum(-1, keepdims=True)
    return shares


def _local_response(a: Array) -> Array:
    padded = np.pad(a**2, [(0, 0)] * 3 + [(2, 2)])
    near = sum(padded[..., shift : shift + a.shape[-1]] for shift in range(5))
    return a / (1 + 0.5 * near) ** 0.75

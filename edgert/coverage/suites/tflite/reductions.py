"""Sums, means, extremes, and their places."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

from edgert.coverage.suites.tflite.variant import (
    ALL_Q,
    FLOAT,
    Q8,
    Kind,
    Operand,
    Variant,
    data,
    drawn,
    fixed,
    given,
)
from edgert.coverage.values import Array

_SHAPE = (1, 4, 5, 3)
_AXES: dict[str, tuple[tuple[int, ...], bool]] = {
    "places": ((1, 2), False),
    "places-kept": ((1, 2), True),
    "channels": ((3,), False),
    "negative-axis": ((-1,), True),
    "all": ((0, 1, 2, 3), False),
}
_NUMBERS: dict[str, tuple[Callable[..., Any], tuple[Kind, ...], dict[str, int]]] = {
    "MEAN": (np.mean, ALL_Q, {"i8": 2, "i16": 3}),
    "SUM": (np.sum, (*Q8, "i32"), {"i8": 2}),
    "REDUCE_MAX": (np.max, (*ALL_Q, "i32"), {"i8": 2, "i16": 3}),
    "REDUCE_MIN": (np.min, (*ALL_Q, "i32"), {"i8": 2, "i16": 3}),
    "REDUCE_PROD": (np.prod, FLOAT, {}),
}


def variants() -> Iterator[Variant]:
    """Yield every variant of this room."""
    for operator, (function, kinds, version) in _NUMBERS.items():
        for name, (axes, keep) in _AXES.items():
            yield _reduce(operator, name, function, axes, kinds, version, keep=keep)
    for operator, logical in (("REDUCE_ANY", np.any), ("REDUCE_ALL", np.all)):
        for name, (axes, keep) in _AXES.items():
            yield _logical(operator, name, logical, axes, keep=keep)
    yield from _places()
    yield from _largest()
    yield from _running()


def _reduce(
    operator: str,
    name: str,
    function: Callable[..., Any],
    axes: tuple[int, ...],
    kinds: tuple[Kind, ...],
    version: dict[str, int],
    *,
    keep: bool,
) -> Variant:
    is_choice = operator in ("REDUCE_MAX", "REDUCE_MIN")
    return Variant(
        operator=operator,
        name=name,
        operands=(data(*_SHAPE), fixed(axes)),
        formula=lambda a, _: function(a, axis=axes, keepdims=keep),
        attributes=("ReducerOptions", {"keepDims": keep}),
        kinds=kinds,
        levels="input" if is_choice else "own",
        steps=0 if is_choice else 1,
        version=version,
    )


def _logical(
    operator: str, name: str, function: Callable[..., Any], axes: tuple[int, ...], *, keep: bool
) -> Variant:
    return Variant(
        operator=operator,
        name=name,
        operands=(given(drawn(*_SHAPE) > 0.5), fixed(axes)),
        formula=lambda a, _: function(a, axis=axes, keepdims=keep),
        attributes=("ReducerOptions", {"keepDims": keep}),
        kinds=("bool",),
        results=("bool",),
    )


def _places() -> Iterator[Variant]:
    for operator, function in (("ARG_MAX", np.argmax), ("ARG_MIN", np.argmin)):
        for name, axis, out in (
            ("channels", 3, "i32"),
            ("negative-axis", -1, "i64"),
            ("height", 1, "i32"),
        ):

            def formula(
                a: Any, _: Any, function: Callable[..., Any] = function, axis: int = axis
            ) -> Any:
                return function(a, axis)

            word = "ArgMax" if operator == "ARG_MAX" else "ArgMin"
            yield Variant(
                operator=operator,
                name=f"{name}-{out}",
                operands=(data(*_SHAPE), fixed(axis)),
                formula=formula,
                attributes=(f"{word}Options", {"outputType": out}),
                kinds=(*Q8, "i32"),
                results=(out,),
                version={"i8": 2},
            )


def _largest() -> Iterator[Variant]:
    # All different, also in eight bits: which of two that are the same is first is not defined.
    values = np.random.default_rng(0).permutation(np.linspace(-2, 2, 36)).reshape(3, 12)
    for count in (1, 4):

        def formula(a: Any, _: Any, count: int = count) -> Any:
            order = np.argsort(-a, -1, kind="stable")[..., :count]
            return np.take_along_axis(a, order, -1), order

        yield Variant(
            operator="TOPK_V2",
            name=f"k-{count}",
            operands=(Operand(array=values.astype(np.float32)), fixed(count)),
            formula=formula,
            attributes=("TopKV2Options", {}),
            kinds=(*Q8, "i32"),
            results=("", "i32"),
            levels="input",
            steps=0,
            version={"i8": 2},
        )


def _running() -> Iterator[Variant]:
    for name, exclusive, reverse in (
        ("plain", False, False),
        ("exclusive", True, False),
        ("reverse", False, True),
    ):
        yield Variant(
            operator="CUMSUM",
            name=name,
            operands=(data(2, 6), fixed(1)),
            formula=partial(_sums, exclusive=exclusive, reverse=reverse),
            attributes=("CumsumOptions", {"exclusive": exclusive, "reverse": reverse}),
            kinds=("f32", "i32", "i64"),
        )


def _sums(a: Array, _: Array, *, exclusive: bool, reverse: bool) -> Array:
    turned = a[:, ::-1] if reverse else a
    total = np.cumsum(turned, 1) - (turned if exclusive else 0)
    return total[:, ::-1] if reverse else total

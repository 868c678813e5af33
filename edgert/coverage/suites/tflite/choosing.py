"""Comparing, selecting, gathering and scattering; and what is made of sizes alone."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from edgert.coverage.suites.tflite.variant import (
    ALL_Q,
    MOVED,
    Operand,
    Variant,
    data,
    drawn,
    fixed,
    given,
)
from edgert.coverage.values import Array

_IMAGE = (1, 4, 5, 3)
_COMPARISONS = {
    "EQUAL": np.equal,
    "NOT_EQUAL": np.not_equal,
    "LESS": np.less,
    "LESS_EQUAL": np.less_equal,
    "GREATER": np.greater,
    "GREATER_EQUAL": np.greater_equal,
}


def variants() -> Iterator[Variant]:
    """Yield every variant of this room."""
    yield from _comparisons()
    yield from _larger_and_smaller()
    yield from _selections()
    yield from _gathered()
    yield from _scattered()
    yield from _of_sizes()


def _comparisons() -> Iterator[Variant]:
    # Some are equal, and none so near that rounding to levels decides.
    left = np.rint(drawn(*_IMAGE) * 2) / 2
    right = np.rint(drawn(*_IMAGE, salt="right") * 2) / 2
    for operator, function in _COMPARISONS.items():
        table = f"{operator.title().replace('_', '')}Options"
        for name, other in (("rank-4", right), ("scalar", right[0, 0, 0, 0])):
            yield Variant(
                operator=operator,
                name=name,
                operands=(Operand(array=left), _scalar_constant(np.asarray(other))),
                formula=function,
                attributes=(table, {}),
                kinds=("f32", "i8", "u8", "i32", "i64"),
                results=("bool",),
                levels="input",
                version={"i8": 2},
            )


def _larger_and_smaller() -> Iterator[Variant]:
    for operator, function in (("MAXIMUM", np.maximum), ("MINIMUM", np.minimum)):
        for name, other in (("rank-4", _IMAGE), ("channel", (3,)), ("scalar", ())):
            yield Variant(
                operator=operator,
                name=name,
                operands=(data(*_IMAGE), _scalar_constant(drawn(*other, salt="right"))),
                formula=function,
                attributes=("MaximumMinimumOptions", {}),
                kinds=(*ALL_Q, "i32", "i64"),
                levels="input",
                steps=0,
                version={"i8": 2, "i16": 4},
            )


def _scalar_constant(array: Array) -> Operand:
    """Return an operand that is part of the file if it is one number, as in real models."""
    return Operand(array=array, constant=not array.shape)


def _selections() -> Iterator[Variant]:
    either = (data(*_IMAGE), data(*_IMAGE, salt="other"))
    for operator, name, choice in (
        ("SELECT", "rank-4", drawn(*_IMAGE, salt="choice") > 0),
        ("SELECT_V2", "rank-4", drawn(*_IMAGE, salt="choice") > 0),
        ("SELECT_V2", "broadcast", drawn(1, 4, 5, 1, salt="choice") > 0),
    ):
        yield Variant(
            operator=operator,
            name=name,
            operands=(given(choice), *either),
            formula=np.where,
            attributes=("SelectV2Options" if operator == "SELECT_V2" else "SelectOptions", {}),
            kinds=MOVED,
            levels="input",
            steps=0,
        )
    yield Variant(
        operator="WHERE",
        name="rank-2",
        operands=(given(drawn(3, 4) > 0),),
        formula=np.argwhere,
        attributes=("WhereOptions", {}),
        kinds=("bool",),
        results=("i64",),
    )


def _gathered() -> Iterator[Variant]:
    version = {"i8": 2, "i16": 4}
    for name, axis, places in (
        ("axis-0", 0, [2, 0, 2]),
        ("axis-1", 1, [3, 1]),
        ("negative-axis", -1, [1, 1, 0]),
        ("matrix", 1, [[0, 1], [3, 2]]),
    ):
        yield Variant(
            operator="GATHER",
            name=name,
            operands=(data(3, 4, 2), given(np.array(places, np.int32))),
            formula=lambda a, at, axis=axis: a.take(at, axis),
            attributes=("GatherOptions", {"axis": axis}),
            kinds=MOVED,
            levels="input",
            steps=0,
            version=version,
        )
    yield Variant(
        operator="GATHER",
        name="batch",
        operands=(data(2, 4, 3), given(np.array([[1, 3], [0, 2]], np.int32))),
        formula=lambda a, at: np.take_along_axis(a, at[:, :, None], 1),
        attributes=("GatherOptions", {"axis": 1, "batchDims": 1}),
        kinds=("f32", "i8", "i32"),
        levels="input",
        steps=0,
        version={"f32": 5, "i8": 5, "i32": 5},
    )
    for name, at in (("elements", [[0, 1, 1], [2, 3, 0]]), ("rows", [[1], [2]])):
        yield Variant(
            operator="GATHER_ND",
            name=name,
            operands=(data(3, 4, 2), given(np.array(at, np.int32))),
            formula=lambda a, at: a[tuple(at.T)],
            attributes=("GatherNdOptions", {}),
            kinds=MOVED,
            levels="input",
            steps=0,
            version={"i16": 3},
        )
    table = Operand(array=drawn(6, 4), constant=True)
    yield Variant(
        operator="EMBEDDING_LOOKUP",
        name="rows",
        operands=(given(np.array([3, 0, 5], np.int32)), table),
        formula=lambda at, a: a[at],
        kinds=("f32",),
        levels="input",
        steps=0,
    )


def _scattered() -> Iterator[Variant]:
    def scatter(at: Any, a: Any, shape: Any) -> Any:
        made = np.zeros(tuple(shape), a.dtype)
        made[tuple(at.T)] = a
        return made

    yield Variant(
        operator="SCATTER_ND",
        name="rows",
        operands=(given(np.array([[4], [1]], np.int32)), data(2, 3), fixed([6, 3])),
        formula=scatter,
        attributes=("ScatterNdOptions", {}),
        kinds=("f32", "i32", "i64"),
    )
    on, off = fixed(1.0, np.float32), fixed(0.0, np.float32)
    for name, axis in (("last", -1), ("first", 0)):
        yield Variant(
            operator="ONE_HOT",
            name=name,
            operands=(given(np.array([1, 0, 4], np.int32)), fixed(5), on, off),
            formula=lambda at, *_, axis=axis: np.moveaxis(np.eye(5)[at], -1, axis),
            attributes=("OneHotOptions", {"axis": axis}),
            kinds=("i32",),
            results=("f32",),
        )


def _of_sizes() -> Iterator[Variant]:
    for out in ("i32", "i64"):
        yield Variant(
            operator="SHAPE",
            name=out,
            operands=(data(*_IMAGE),),
            formula=lambda a: np.array(a.shape),
            attributes=("ShapeOptions", {"outType": out}),
            kinds=("f32",),
            results=(out,),
        )
    yield Variant(
        operator="RANK",
        name="rank-4",
        operands=(data(*_IMAGE),),
        formula=lambda a: np.asarray(a.ndim),
        attributes=("RankOptions", {}),
        results=("i32",),
    )
    yield Variant(
        operator="ZEROS_LIKE",
        name="rank-4",
        operands=(data(*_IMAGE),),
        formula=np.zeros_like,
        attributes=("ZerosLikeOptions", {}),
        kinds=("f32", "i32", "i64"),
    )
    yield Variant(
        operator="FILL",
        name="2x3",
        operands=(fixed([2, 3]), data()),
        formula=lambda shape, a: np.full(tuple(shape), a),
        attributes=("FillOptions", {}),
        kinds=("f32", "i8", "i16", "i32", "i64"),
        levels="input",
        steps=0,
        version={"i8": 3, "i16": 3},
    )

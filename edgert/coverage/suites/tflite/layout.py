"""Other shapes and orders of the same elements: not even one level may change."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from edgert.coverage.suites.tflite.variant import Variant, data, fixed, moves

_IMAGE = (1, 4, 6, 3)


def variants() -> Iterator[Variant]:
    """Yield every variant of this room."""
    yield from _other_shapes()
    yield from _orders()
    yield from _joined_and_split()


def _other_shapes() -> Iterator[Variant]:
    for name, shape in (("flat", (1, 72)), ("inferred", (1, -1, 3)), ("rank-4", (1, 6, 4, 3))):
        yield moves(
            "RESHAPE",
            name,
            (data(*_IMAGE), fixed(shape)),
            lambda a, _, shape=shape: a.reshape(shape),
            "ReshapeOptions",
            {"newShape": list(shape)},
        )
    for name, axes in (("all", ()), ("one", (1,)), ("negative", (-1,))):
        yield moves(
            "SQUEEZE",
            name,
            (data(1, 1, 6, 1),),
            lambda a, axes=axes: a.squeeze(axes or None),
            "SqueezeOptions",
            {"squeezeDims": list(axes)},
        )
    for axis in (0, 2, -1):
        yield moves(
            "EXPAND_DIMS",
            f"axis-{axis}".replace("--", "-minus-"),
            (data(4, 6, 3), fixed(axis)),
            lambda a, _, axis=axis: np.expand_dims(a, axis),
            "ExpandDimsOptions",
        )


def _orders() -> Iterator[Variant]:
    for order in ((0, 3, 1, 2), (0, 2, 1, 3), (3, 2, 1, 0)):
        yield moves(
            "TRANSPOSE",
            "".join(map(str, order)),
            (data(*_IMAGE), fixed(order)),
            lambda a, _, order=order: a.transpose(order),
            "TransposeOptions",
            version={"i8": 2, "i16": 5},
        )
    yield moves(
        "TRANSPOSE",
        "rank-2",
        (data(4, 6), fixed([1, 0])),
        lambda a, _: a.T,
        "TransposeOptions",
        version={"i8": 2, "i16": 5},
    )
    for name, axes in (("height", [1]), ("channels", [3])):
        yield moves(
            "REVERSE_V2",
            name,
            (data(*_IMAGE), fixed(axes)),
            lambda a, _, axes=tuple(axes): np.flip(a, axes),
            "ReverseV2Options",
            kinds=("f32", "u8", "i16", "i32"),
        )
    yield moves(
        "REVERSE_SEQUENCE",
        "rows",
        (data(3, 5), fixed([2, 5, 3])),
        lambda a, _: np.stack([np.r_[r[:n][::-1], r[n:]] for r, n in zip(a, (2, 5, 3))]),  # noqa: B905
        "ReverseSequenceOptions",
        {"seqDim": 1, "batchDim": 0},
        kinds=("f32", "u8", "i16", "i32"),
    )


def _joined_and_split() -> Iterator[Variant]:
    three = tuple(data(*_IMAGE, salt=salt) for salt in "abc")
    for name, count, axis in (("channels", 2, 3), ("height", 3, 1), ("negative-axis", 2, -1)):
        yield moves(
            "CONCATENATION",
            name,
            three[:count],
            lambda *arrays, axis=axis: np.concatenate(arrays, axis),
            "ConcatenationOptions",
            {"axis": axis},
            version={"i8": 2, "i16": 3},
        )
    for axis in (0, 3):
        yield moves(
            "PACK",
            f"axis-{axis}",
            tuple(data(4, 6, 3, salt=salt) for salt in "ab"),
            lambda *arrays, axis=axis: np.stack(arrays, axis),
            "PackOptions",
            {"valuesCount": 2, "axis": axis},
            version={"i8": 2, "i16": 3},
        )
        yield moves(
            "UNPACK",
            f"axis-{axis}",
            (data(2, 3, 4, 2),),
            lambda a, axis=axis: tuple(np.moveaxis(a, axis, 0)),
            "UnpackOptions",
            {"num": 2, "axis": axis},
            results=("", ""),
            version={"i8": 2, "u8": 2, "i16": 4},
        )
    for axis, parts in ((2, 3), (1, 2)):
        yield moves(
            "SPLIT",
            f"axis-{axis}",
            (fixed(axis), data(*_IMAGE)),
            lambda _, a, axis=axis, parts=parts: tuple(np.split(a, parts, axis)),
            "SplitOptions",
            {"numSplits": parts},
            results=("",) * parts,
            version={"i8": 2, "i16": 4, "i32": 3},
        )
    yield moves(
        "SPLIT_V",
        "1-2-3",
        (data(*_IMAGE), fixed([1, 2, 3]), fixed(2)),
        lambda a, *_: tuple(np.split(a, [1, 3], 2)),
        "SplitVOptions",
        {"numSplits": 3},
        results=("",) * 3,
        version={"i8": 2},
    )

"""Cuts, borders, blocks and copies: elements are moved, left out or repeated, never changed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from edgert.coverage.suites.tflite.variant import Operand, Variant, data, fixed, moves
from edgert.coverage.values import Array

_IMAGE = (1, 4, 6, 3)


def variants() -> Iterator[Variant]:
    """Yield every variant of this room."""
    yield from _cuts()
    yield from _borders()
    yield from _blocks()
    yield from _copies()


def _cuts() -> Iterator[Variant]:
    for name, begin, size in (
        ("inside", (0, 1, 2, 0), (1, 2, 3, 3)),
        ("to-the-end", (0, 1, 0, 1), (-1, -1, -1, -1)),
    ):
        end = [b + s if s > 0 else None for b, s in zip(begin, size, strict=True)]
        cut = tuple(slice(b, e) for b, e in zip(begin, end, strict=True))
        yield moves(
            "SLICE",
            name,
            (data(*_IMAGE), fixed(begin), fixed(size)),
            lambda a, *_, cut=cut: a[cut],
            "SliceOptions",
            version={"i8": 2, "i16": 4},
        )
    whole: tuple[int, ...] = (1, 4, 6, 3)
    yield _strided("stride-2", (0, 0, 0, 0), whole, (1, 2, 2, 1), np.s_[:, ::2, ::2])
    yield _strided("part", (0, 1, 1, 0), (1, 3, 5, 2), (1, 1, 1, 1), np.s_[:, 1:3, 1:5, :2])
    yield _strided("negative", (0, -3, 0, 0), (1, -1, 6, 3), (1, 1, 1, 1), np.s_[:, -3:-1])
    yield _strided(
        "backwards", (0, 3, 5, 2), whole, (1, -1, -1, 1), np.s_[:, ::-1, ::-1, 2:], endMask=6
    )
    inside = np.s_[:, 1:3, :, :2]
    masked = {"beginMask": 5, "endMask": 5}
    yield _strided("masks", (9, 1, 9, 0), (9, 3, 9, 2), (1, 1, 1, 1), inside, **masked)
    yield _strided(
        "shrink", (0, 2, 0, 0), (1, 3, 6, 3), (1, 1, 1, 1), np.s_[:, 2], shrinkAxisMask=2
    )


def _strided(
    name: str,
    begin: tuple[int, ...],
    end: tuple[int, ...],
    strides: tuple[int, ...],
    cut: Any,
    **masks: int,
) -> Variant:
    return moves(
        "STRIDED_SLICE",
        name,
        (data(*_IMAGE), fixed(begin), fixed(end), fixed(strides)),
        lambda a, *_: a[cut],
        "StridedSliceOptions",
        masks,
        version={"i8": 2},
    )


def _borders() -> Iterator[Variant]:
    newer = {"i8": 2, "i16": 3}
    for name, around in (
        ("image", ((0, 0), (1, 1), (1, 2), (0, 0))),
        ("channels", ((0, 0), (0, 0), (0, 0), (1, 2))),
    ):
        yield moves(
            "PAD",
            name,
            (data(*_IMAGE), fixed(around)),
            lambda a, _, around=around: np.pad(a, around),
            "PadOptions",
            version=newer,
        )
        value = Operand(array=np.full((), 1.5, np.float32), constant=True)
        yield moves(
            "PADV2",
            name,
            (data(*_IMAGE), fixed(around), value),
            lambda a, _, fill, around=around: np.pad(a, around, constant_values=fill),
            "PadV2Options",
            version=newer,
        )
    edge = ((0, 0), (2, 1), (1, 2), (0, 0))
    for word, mode in (("REFLECT", "reflect"), ("SYMMETRIC", "symmetric")):
        yield moves(
            "MIRROR_PAD",
            mode,
            (data(*_IMAGE), fixed(edge)),
            lambda a, _, mode=mode: np.pad(a, edge, mode=mode),
            "MirrorPadOptions",
            {"mode": word},
            version=newer,
        )


def _blocks() -> Iterator[Variant]:
    for size in (2, 3):
        yield moves(
            "SPACE_TO_DEPTH",
            f"block-{size}",
            (data(1, 6, 12, 2),),
            lambda a, size=size: _to_depth(a, size),
            "SpaceToDepthOptions",
            {"blockSize": size},
            version={"i8": 2},
            kinds=("f32", "i8", "u8", "i32"),
        )
        yield moves(
            "DEPTH_TO_SPACE",
            f"block-{size}",
            (data(1, 2, 3, 2 * size * size),),
            lambda a, size=size: _to_space(a, size),
            "DepthToSpaceOptions",
            {"blockSize": size},
            version={"i8": 2},
            kinds=("f32", "i8", "u8", "i32"),
        )
    none = fixed([[0, 0], [0, 0]])
    newer = {"i8": 2, "i16": 4}
    yield moves(
        "SPACE_TO_BATCH_ND",
        "block-2",
        (data(1, 4, 6, 3), fixed([2, 2]), none),
        lambda a, *_: np.concatenate([a[:, r::2, c::2] for r in range(2) for c in range(2)]),
        "SpaceToBatchNDOptions",
        version=newer,
    )
    yield moves(
        "BATCH_TO_SPACE_ND",
        "block-2",
        (data(4, 2, 3, 3), fixed([2, 2]), none),
        lambda a, *_: _to_space(np.concatenate(list(a), -1)[None], 2),
        "BatchToSpaceNDOptions",
        version=newer,
    )


def _to_depth(a: Array, size: int) -> Array:
    batch, high, wide, channels = a.shape
    parts = a.reshape(batch, high // size, size, wide // size, size, channels)
    return parts.transpose(0, 1, 3, 2, 4, 5).reshape(batch, high // size, wide // size, -1)


def _to_space(a: Array, size: int) -> Array:
    batch, high, wide, channels = a.shape
    parts = a.reshape(batch, high, wide, size, size, channels // size**2)
    return parts.transpose(0, 1, 3, 2, 4, 5).reshape(batch, high * size, wide * size, -1)


def _copies() -> Iterator[Variant]:
    for name, times in (("image", (1, 2, 3, 1)), ("channels", (1, 1, 1, 2))):
        yield moves(
            "TILE",
            name,
            (data(*_IMAGE), fixed(times)),
            lambda a, _, times=times: np.tile(a, times),
            "TileOptions",
            version={"i8": 3},
            kinds=("f32", "i8", "u8", "i32"),
        )
    for name, shape in (("channel", (3,)), ("places", (1, 4, 1, 3))):
        yield moves(
            "BROADCAST_TO",
            name,
            (data(*shape), fixed(_IMAGE)),
            lambda a, _: np.broadcast_to(a, _IMAGE),
            "BroadcastToOptions",
            version={"f32": 2, "u8": 2, "i32": 2, "i8": 3, "i16": 3},
        )

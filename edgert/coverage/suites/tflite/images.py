"""Pools and resizing."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from edgert.coverage.suites.tflite.filters import CLAMPS
from edgert.coverage.suites.tflite.variant import ALL_Q, FLOAT, Variant, data, fixed
from edgert.coverage.suites.tflite.windows import windows
from edgert.coverage.values import Array

_SIZE = (6, 5)
# TFLite weighs neighbours by fractions of ten bits; of 16 bits that is seen.
_TEN_BITS = {"i16": 128}


def variants() -> Iterator[Variant]:
    """Yield every variant of this room."""
    for operator in ("AVERAGE_POOL_2D", "MAX_POOL_2D", "L2_POOL_2D"):
        yield _pool(operator, "2x2-stride-2", (2, 2), (2, 2), "VALID")
        yield _pool(operator, "3x3-same", (3, 3), (1, 1), "SAME")
        yield _pool(operator, "3x3-stride-2-same", (3, 3), (2, 2), "SAME")
        yield _pool(operator, "3x2-valid", (3, 2), (2, 1), "VALID")
        yield _pool(operator, "whole", (8, 9), (1, 1), "VALID")
        yield _pool(operator, "relu", (2, 2), (2, 2), "VALID", "RELU")
    for target in ((12, 10), (9, 8), (3, 4)):
        name = "x".join(map(str, target))
        yield _resize("RESIZE_BILINEAR", name, target)
        yield _resize("RESIZE_BILINEAR", f"{name}-half-pixel", target, half=True)
        yield _resize("RESIZE_NEAREST_NEIGHBOR", name, target)
    yield _resize("RESIZE_BILINEAR", "align-corners", (11, 9), align=True)
    yield _resize("RESIZE_NEAREST_NEIGHBOR", "half-pixel", (12, 10), half=True)
    yield _resize("RESIZE_NEAREST_NEIGHBOR", "align-corners", (16, 13), align=True)


def _pool(
    operator: str,
    name: str,
    kernel: tuple[int, int],
    stride: tuple[int, int],
    padding: str,
    act: str = "NONE",
) -> Variant:
    def formula(image: Array) -> Array:
        found = windows(image, kernel, stride, padding, fill=np.nan)
        if operator == "MAX_POOL_2D":
            made = np.nanmax(found, (-1, -2))
        elif operator == "AVERAGE_POOL_2D":
            made = np.nanmean(found, (-1, -2))
        else:
            made = np.sqrt(np.nanmean(found**2, (-1, -2)))
        clamped: Array = np.clip(made, *CLAMPS[act])
        return clamped

    fields = {
        "padding": padding,
        "strideH": stride[0],
        "strideW": stride[1],
        "filterHeight": kernel[0],
        "filterWidth": kernel[1],
        "fusedActivationFunction": act,
    }
    return Variant(
        operator=operator,
        name=name,
        operands=(data(1, 8, 9, 4),),
        formula=formula,
        attributes=("Pool2DOptions", fields),
        kinds=FLOAT if operator == "L2_POOL_2D" else ALL_Q,
        levels="input",
        steps=0 if operator == "MAX_POOL_2D" else 1,
        version={"i8": 2, "i16": 3},
    )


def _resize(
    operator: str,
    name: str,
    target: tuple[int, int],
    *,
    align: bool = False,
    half: bool = False,
) -> Variant:
    is_linear = operator == "RESIZE_BILINEAR"

    def formula(image: Array, _: Array) -> Array:
        for axis, size in enumerate(target, 1):
            places = _places(image.shape[axis], size, align=align, half=half)
            along = _between if is_linear else _nearest
            image = along(image, axis, places, align=align, half=half)
        return image

    word = "Bilinear" if is_linear else "NearestNeighbor"
    fields = {"alignCorners": align, "halfPixelCenters": half}
    newest = 3 if half or (align and not is_linear) else 1
    return Variant(
        operator=operator,
        name=name,
        operands=(data(1, *_SIZE, 3), fixed(target)),
        formula=formula,
        attributes=(f"Resize{word}Options", fields),
        kinds=ALL_Q,
        levels="input",
        steps=_TEN_BITS if is_linear else 0,
        version={"f32": newest, "u8": newest, "i8": max(newest, 2), "i16": 4},
    )


def _places(size: int, target: int, *, align: bool, half: bool) -> Array:
    """Return where each of ``target`` lies among ``size``."""
    ratio = (size - 1) / (target - 1) if align else size / target
    return (np.arange(target) + 0.5) * ratio - 0.5 if half else np.arange(target) * ratio


def _between(image: Array, axis: int, places: Array, **_: bool) -> Array:
    places = np.clip(places, 0, image.shape[axis] - 1)
    low = np.floor(places).astype(int)
    high = np.ceil(places).astype(int)
    share = (places - low).reshape([-1 if each == axis else 1 for each in range(image.ndim)])
    below, above = image.take(low, axis), image.take(high, axis)
    mixed: Array = below + (above - below) * share
    return mixed


def _nearest(image: Array, axis: int, places: Array, *, align: bool, half: bool) -> Array:
    where = places + 0.5 if align or half else places
    chosen = np.clip(np.floor(where + 1e-9).astype(int), 0, image.shape[axis] - 1)
    found: Array = image.take(chosen, axis)
    return found

"""Convolutions and matrix products: where nearly all of a network's arithmetic is."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from edgert.coverage.suites.tflite.variant import ALL_Q, Operand, Variant, data, drawn, fixed
from edgert.coverage.suites.tflite.windows import convolution, depthwise, transposed, windows
from edgert.coverage.values import Array

CLAMPS: dict[str, tuple[float, float]] = {
    "NONE": (-np.inf, np.inf),
    "RELU": (0.0, np.inf),
    "RELU6": (0.0, 6.0),
    "RELU_N1_TO_1": (-1.0, 1.0),
}


def weights(*shape: int, axis: int | None = 0, salt: str = "") -> Operand:
    """Return weights, with a scale for each slice along an axis in int8."""
    array = drawn(*shape, low=-1.0, high=1.0, salt=salt)
    return Operand(array=array, role="weights", constant=True, axis=axis)


def bias(size: int) -> Operand:
    """Return one number for each output channel."""
    return Operand(array=drawn(size, low=-1.0, high=1.0), role="bias", constant=True)


def variants() -> Iterator[Variant]:
    """Yield every variant of this room."""
    yield from _convolutions()
    yield from _depthwise()
    yield from _transposed()
    yield from _in_three_dimensions()
    yield from _fully_connected()
    yield from _products()


def _convolutions() -> Iterator[Variant]:
    yield _conv("same", (3, 3))
    yield _conv("valid", (3, 3), padding="VALID")
    yield _conv("1x1", (1, 1))
    yield _conv("stride-2-same", (3, 3), stride=(2, 2))
    yield _conv("stride-2-valid", (3, 3), stride=(2, 2), padding="VALID")
    yield _conv("stride-2x1", (3, 3), stride=(2, 1))
    yield _conv("dilation-2", (3, 3), dilation=(2, 2))
    yield _conv("kernel-5x3", (5, 3))
    yield _conv("kernel-1x7", (1, 7))
    yield _conv("relu", (3, 3), act="RELU")
    yield _conv("relu6", (3, 3), act="RELU6")
    yield _conv("relu-n1-to-1", (3, 3), act="RELU_N1_TO_1")
    yield _conv("batch-2", (3, 3), batch=2)
    yield _conv("grouped", (3, 3), groups=2)
    yield _conv("per-tensor", (3, 3), axis=None)


def _conv(  # noqa: PLR0913  what a convolution is made of
    name: str,
    kernel: tuple[int, int],
    *,
    stride: tuple[int, int] = (1, 1),
    dilation: tuple[int, int] = (1, 1),
    padding: str = "SAME",
    act: str = "NONE",
    batch: int = 1,
    groups: int = 1,
    axis: int | None = 0,
) -> Variant:
    def formula(image: Array, filters: Array, added: Array) -> Array:
        found = windows(image, kernel, stride, padding, dilation)
        return np.clip(convolution(found, filters, added), *CLAMPS[act])

    return Variant(
        operator="CONV_2D",
        name=name,
        operands=(data(batch, 8, 9, 4), weights(6, *kernel, 4 // groups, axis=axis), bias(6)),
        formula=formula,
        attributes=("Conv2DOptions", _fields(stride, dilation, padding, act)),
        kinds=ALL_Q if groups == 1 else ("f32", "i8"),
        version={"f32": 6, "i8": 6} if groups > 1 else {"i8": 3, "i16": 4},
    )


def _fields(
    stride: tuple[int, int], dilation: tuple[int, int], padding: str, act: str
) -> dict[str, Any]:
    return {
        "padding": padding,
        "strideH": stride[0],
        "strideW": stride[1],
        "dilationHFactor": dilation[0],
        "dilationWFactor": dilation[1],
        "fusedActivationFunction": act,
    }


def _depthwise() -> Iterator[Variant]:
    yield _depth("same")
    yield _depth("valid", padding="VALID")
    yield _depth("stride-2", stride=(2, 2))
    yield _depth("dilation-2", dilation=(2, 2))
    yield _depth("multiplier-2", multiplier=2)
    yield _depth("relu6", act="RELU6")
    yield _depth("kernel-5x5", kernel=(5, 5))


def _depth(
    name: str,
    *,
    kernel: tuple[int, int] = (3, 3),
    stride: tuple[int, int] = (1, 1),
    dilation: tuple[int, int] = (1, 1),
    padding: str = "SAME",
    act: str = "NONE",
    multiplier: int = 1,
) -> Variant:
    def formula(image: Array, filters: Array, added: Array) -> Array:
        found = windows(image, kernel, stride, padding, dilation)
        return np.clip(depthwise(found, filters, added), *CLAMPS[act])

    out = 4 * multiplier
    fields = {**_fields(stride, dilation, padding, act), "depthMultiplier": multiplier}
    return Variant(
        operator="DEPTHWISE_CONV_2D",
        name=name,
        operands=(data(1, 8, 9, 4), weights(1, *kernel, out, axis=3), bias(out)),
        formula=formula,
        attributes=("DepthwiseConv2DOptions", fields),
        kinds=ALL_Q,
        version={"f32": 1 if dilation == (1, 1) else 2, "i8": 3, "i16": 5},
    )


def _transposed() -> Iterator[Variant]:
    yield _spread("stride-2-same", (2, 2), "SAME", (10, 12))
    yield _spread("stride-2-valid", (2, 2), "VALID", (11, 13))
    yield _spread("stride-1", (1, 1), "SAME", (5, 6))
    yield _spread("kernel-2", (2, 2), "SAME", (10, 12), kernel=2)
    yield _spread("bias", (2, 2), "SAME", (10, 12), has_bias=True)


def _spread(
    name: str,
    stride: tuple[int, int],
    padding: str,
    size: tuple[int, int],
    *,
    kernel: int = 3,
    has_bias: bool = False,
) -> Variant:
    def formula(_: Array, filters: Array, image: Array, added: Array | float = 0.0) -> Array:
        return transposed(image, filters, size, stride, padding) + added

    last = (bias(4),) if has_bias else ()
    shape = fixed([1, *size, 4])
    return Variant(
        operator="TRANSPOSE_CONV",
        name=name,
        operands=(shape, weights(4, kernel, kernel, 3), data(1, 5, 6, 3), *last),
        formula=formula,
        attributes=(
            "TransposeConvOptions",
            {"padding": padding, "strideH": stride[0], "strideW": stride[1]},
        ),
        kinds=ALL_Q,
        version=dict.fromkeys(ALL_Q, 3) if has_bias else {"i8": 2},
    )


def _in_three_dimensions() -> Iterator[Variant]:
    for name, padding in (("same", "SAME"), ("valid", "VALID")):

        def formula(image: Array, filters: Array, added: Array, padding: str = padding) -> Array:
            found = windows(image, filters.shape[:3], (1, 1, 1), padding)
            return convolution(found, np.moveaxis(filters, -1, 0), added)

        filters = Operand(array=drawn(2, 3, 3, 2, 4, low=-1, high=1), role="float", constant=True)
        fields = {"padding": padding, "strideD": 1, "strideH": 1, "strideW": 1}
        yield Variant(
            operator="CONV_3D",
            name=name,
            operands=(data(1, 4, 5, 6, 2), filters, bias(4)),
            formula=formula,
            attributes=("Conv3DOptions", fields),
        )


def _fully_connected() -> Iterator[Variant]:
    yield _dense("plain", (1, 12))
    yield _dense("batch-4", (4, 12))
    yield _dense("relu", (1, 12), act="RELU")
    yield _dense("relu6", (1, 12), act="RELU6")
    yield _dense("no-bias", (2, 12), has_bias=False, version=6)
    yield _dense("keep-dims", (1, 3, 12), keep=True, version=5)
    yield _dense("rank-4", (1, 2, 2, 3), version=1)


def _dense(
    name: str,
    shape: tuple[int, ...],
    *,
    act: str = "NONE",
    has_bias: bool = True,
    keep: bool = False,
    version: int = 1,
) -> Variant:
    def formula(values: Array, filters: Array, added: Array | float = 0.0) -> Array:
        rows = values if keep else values.reshape(-1, 12)
        return np.clip(rows @ filters.T + added, *CLAMPS[act])

    return Variant(
        operator="FULLY_CONNECTED",
        name=name,
        operands=(data(*shape), weights(5, 12, axis=None), bias(5) if has_bias else None),
        formula=formula,
        attributes=(
            "FullyConnectedOptions",
            {"fusedActivationFunction": act, "keepNumDims": keep},
        ),
        kinds=ALL_Q,
        version={"f32": version, "i8": max(version, 4), "u8": version, "i16": max(version, 7)},
    )


def _products() -> Iterator[Variant]:
    yield _product("rank-2", (3, 4), (4, 5), np.matmul)
    yield _product("rank-3", (2, 3, 4), (2, 4, 5), np.matmul)
    yield _product("rank-4", (1, 2, 3, 4), (1, 2, 4, 5), np.matmul)
    yield _product("broadcast", (2, 3, 4), (1, 4, 5), np.matmul)
    yield _product(
        "transpose-left", (2, 4, 3), (2, 4, 5), lambda a, b: a.swapaxes(-1, -2) @ b, adj_x=True
    )
    yield _product(
        "transpose-right", (2, 3, 4), (2, 5, 4), lambda a, b: a @ b.swapaxes(-1, -2), adj_y=True
    )


def _product(
    name: str,
    left: tuple[int, ...],
    right: tuple[int, ...],
    formula: Callable[..., Any],
    *,
    adj_x: bool = False,
    adj_y: bool = False,
) -> Variant:
    return Variant(
        operator="BATCH_MATMUL",
        name=name,
        operands=(data(*left), data(*right, salt="right")),
        formula=formula,
        attributes=("BatchMatMulOptions", {"adjX": adj_x, "adjY": adj_y}),
        kinds=("f32", "i8", "i16"),
        version={"i8": 2, "i16": 3},
    )

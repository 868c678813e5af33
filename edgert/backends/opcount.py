"""Operators, parameters and multiply-accumulates of a model that OpenVINO has read."""

from __future__ import annotations

from collections import Counter
from math import prod
from typing import Any

import msgspec

_NOT_OPERATORS = ("Parameter", "Result", "Constant")
# Types that hold weights; 64-bit and 32-bit integers are shapes, axes and indices.
_WEIGHT_TYPES = ("f32", "f16", "bf16", "f64", "i8", "u8", "i4", "u4")
_BODIES = ("If", "Loop", "TensorIterator")
_CELLS = ("GRUSequence", "LSTMSequence", "RNNSequence", "GRUCell", "LSTMCell", "RNNCell")


class OperatorCount(msgspec.Struct, frozen=True):
    """What a model is made of.

    Attributes:
        operators: Type of operator -> how many.
        parameters: Elements of all weights.
        macs: Multiply-accumulates of convolutions and matrix products for one inference; None
            where the shapes are open.
        notes: What was not counted.
        activations: Elements of the most that one operator reads and writes, weights aside; None
            where the shapes are open.
    """

    operators: dict[str, int]
    parameters: int
    macs: int | None
    notes: list[str]
    activations: int | None = None


def count_operators(model: Any) -> OperatorCount:
    """Count an ``openvino.Model``."""
    nodes = model.get_ops()
    operators = Counter(node.get_type_name() for node in nodes)
    weights = [node for node in nodes if node.get_type_name() == "Constant" and _is_weight(node)]
    uncounted = sorted(set(operators) & {*_BODIES, *_CELLS})
    notes = [f"the MACs inside {kind} are not counted" for kind in uncounted]
    macs: int | None = None
    if any(_needs_shape(node) and not _is_static(node) for node in nodes):
        notes.append("MACs are not known while shapes are open")
    else:
        macs = sum(map(_macs, nodes))
    return OperatorCount(
        {kind: n for kind, n in sorted(operators.items()) if kind not in _NOT_OPERATORS},
        sum(prod(node.get_output_shape(0)) for node in weights),
        macs,
        notes,
        _most_activations([node for node in nodes if node.get_type_name() not in _NOT_OPERATORS]),
    )


def _is_weight(constant: Any) -> bool:
    return constant.get_output_element_type(0).get_type_name() in _WEIGHT_TYPES


def _most_activations(operators: list[Any]) -> int | None:
    if not all(map(_has_sizes, operators)):
        return None
    return max(map(_activations, operators), default=0)


def _has_sizes(node: Any) -> bool:
    return all(value.get_partial_shape().is_static for value in node.outputs())


def _activations(node: Any) -> int:
    read = [value.get_source_output() for value in node.inputs()]
    moved = [value for value in read if value.get_node().get_type_name() != "Constant"]
    return sum(prod(value.get_shape()) for value in (*moved, *node.outputs()))


def _needs_shape(node: Any) -> bool:
    return node.get_type_name() in _MACS


def _is_static(node: Any) -> bool:
    shapes = [value.get_partial_shape() for value in node.input_values()[:2]]
    return all(shape.is_static for shape in (*shapes, node.get_output_partial_shape(0)))


def _macs(node: Any) -> int:
    counter = _MACS.get(node.get_type_name())
    return counter(node) if counter else 0


def _convolution(node: Any) -> int:
    # weights [out, in, kernel ...], output [batch, out, place ...]
    batch, _, *places = node.get_output_shape(0)
    return int(batch * prod(places) * prod(node.get_input_shape(1)))


def _transposed_convolution(node: Any) -> int:
    # every place of the input meets every weight
    batch, _, *places = node.get_input_shape(0)
    return int(batch * prod(places) * prod(node.get_input_shape(1)))


def _matrix_product(node: Any) -> int:
    left = node.get_input_shape(0)
    shared = left[-2] if node.get_attributes().get("transpose_a") and len(left) > 1 else left[-1]
    return int(prod(node.get_output_shape(0)) * shared)


_MACS = {
    "Convolution": _convolution,
    "GroupConvolution": _convolution,
    "ConvolutionBackpropData": _transposed_convolution,
    "GroupConvolutionBackpropData": _transposed_convolution,
    "MatMul": _matrix_product,
}

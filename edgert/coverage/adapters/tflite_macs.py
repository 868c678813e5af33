"""Multiply-accumulates of TFLite operators, from the shapes of what they read and make."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod

Shape = tuple[int, ...]
Shapes = Sequence[Shape | None]
"""Of each operand, None where it is absent or its sizes are not known."""

# Operators that multiply and accumulate, and are not counted here.
_UNCOUNTED = frozenset(
    {
        *("LSTM", "BIDIRECTIONAL_SEQUENCE_LSTM", "BIDIRECTIONAL_SEQUENCE_RNN"),
        *("CONV_3D_TRANSPOSE", "STABLEHLO_CONVOLUTION", "STABLEHLO_DOT_GENERAL"),
        *("IF", "WHILE", "CALL", "STABLEHLO_WHILE", "STABLEHLO_COMPOSITE"),
    }
)


def node_macs(operator: str, inputs: Shapes, outputs: Shapes) -> int | None:
    """Return the multiply-accumulates of a node for one inference.

    Returns:
        None where they cannot be told; 0 of operators that do not multiply matrices or filters, as
        of ONNX models.
    """
    if operator in _UNCOUNTED:
        return None
    counter = _COUNTERS.get(operator)
    if counter is None:
        return 0
    try:
        return counter(inputs, outputs)
    except (IndexError, TypeError, ZeroDivisionError):  # an operand that is not as it should be
        return None


def _known(shapes: Shapes, number: int) -> Shape:
    shape = shapes[number]
    if shape is None:
        raise TypeError("a shape that is not known")
    return shape


def _convolution(inputs: Shapes, outputs: Shapes) -> int:
    """Every place of the output meets every weight once."""
    return prod(_known(outputs, 0)[:-1]) * prod(_known(inputs, 1))


def _transposed_convolution(inputs: Shapes, _: Shapes) -> int:
    """Every place of the input meets every weight once."""
    return prod(_known(inputs, 2)[:-1]) * prod(_known(inputs, 1))


def _fully_connected(inputs: Shapes, _: Shapes) -> int:
    weights = _known(inputs, 1)
    return prod(_known(inputs, 0)) // weights[-1] * prod(weights)


def _matrix_product(inputs: Shapes, outputs: Shapes) -> int:
    """The length of the sums is what the left matrix has beside the rows of the output."""
    left, out = _known(inputs, 0), _known(outputs, 0)
    return prod(out) * (left[-1] * left[-2] // out[-2])


def _cell(first: int, last: int) -> Callable[[Shapes, Shapes], int]:
    """Return a counter of cells: every step of every sequence meets every weight once."""

    def count(inputs: Shapes, _: Shapes) -> int:
        weights = [shape for shape in inputs[first : last + 1] if shape is not None]
        return prod(_known(inputs, 0)[:-1]) * sum(map(prod, weights))

    return count


_COUNTERS: dict[str, Callable[[Shapes, Shapes], int]] = {
    "CONV_2D": _convolution,
    "CONV_3D": _convolution,
    "DEPTHWISE_CONV_2D": _convolution,
    "TRANSPOSE_CONV": _transposed_convolution,
    "FULLY_CONNECTED": _fully_connected,
    "BATCH_MATMUL": _matrix_product,
    "UNIDIRECTIONAL_SEQUENCE_LSTM": _cell(1, 8),
    "UNIDIRECTIONAL_SEQUENCE_RNN": _cell(1, 2),
    "RNN": _cell(1, 2),
    "SVDF": _cell(1, 2),
}

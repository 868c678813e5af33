"""What an ONNX file is made of; runs in a child process (``inspect.py``)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from math import prod
from typing import Any

import msgspec

from edgert.models.onnx_shapes import (
    Dims,
    dtype_of,
    open_dimensions,
    read_model,
    shapes_of,
    specs_of,
    without_rank,
)
from edgert.tensor import TensorSpec

# Types that hold weights; 64-bit and 32-bit integers are shapes, axes and indices.
WEIGHT_TYPES = {"f32", "f16", "bf16", "f64", "i8", "u8", "i4", "u4"}
# Operators that multiply and accumulate, and are not counted here.
UNCOUNTED = {
    *("LSTM", "GRU", "RNN", "Einsum", "Attention", "DeformConv"),
    *("com.microsoft::Attention", "com.microsoft::MultiHeadAttention"),
    *("com.microsoft::GroupQueryAttention", "com.microsoft::FusedConv"),
    *("com.microsoft::MatMulNBits", "com.microsoft::FusedMatMul", "com.microsoft::FusedGemm"),
}


def inspect(path: str, shapes: dict[str, list[int]]) -> dict[str, Any]:
    """Return signature, operators, parameters, MACs and origin of an ONNX file, as JSON-able data.

    Args:
        path: The file.
        shapes: Sizes for inputs, open ones and others.

    Raises:
        ModelError: It is damaged, or ``shapes`` do not fit.
    """
    model, replaced = read_model(path, shapes)
    inputs, outputs = specs_of(model)
    nodes = list(_nodes(model.graph))
    macs, notes = _count_macs(model, open_dimensions(inputs))
    return {
        "inputs": msgspec.to_builtins(inputs),
        "outputs": msgspec.to_builtins(outputs),
        "operators": dict(sorted(Counter(map(kind_of, nodes)).items())),
        "parameters": _count_parameters(model.graph, nodes),
        "macs": macs,
        "notes": [*notes, *without_rank(model), *_told(replaced)],
        "opset": {entry.domain or "ai.onnx": entry.version for entry in model.opset_import},
        "producer": f"{model.producer_name} {model.producer_version}".strip(),
    }


def _told(replaced: Mapping[str, TensorSpec]) -> list[str]:
    return [
        f"the file declares '{name}' as {spec}: whether it takes other sizes, a runtime proves"
        for name, spec in replaced.items()
    ]


def kind_of(node: Any) -> str:
    """Return the operator of a node, with its domain where that is not ONNX's own."""
    if node.domain in ("", "ai.onnx"):
        return str(node.op_type)
    return f"{node.domain}::{node.op_type}"


def _nodes(graph: Any) -> Iterator[Any]:
    """Every node, those of inner graphs (If, Loop, Scan) too."""
    for node in graph.node:
        yield node
        for inner in _inner_graphs(node):
            yield from _nodes(inner)


def _inner_graphs(node: Any) -> Iterator[Any]:
    for attribute in node.attribute:
        if attribute.HasField("g"):
            yield attribute.g
        yield from attribute.graphs


def _count_parameters(graph: Any, nodes: list[Any]) -> int:

    inner = [one for node in nodes for one in _inner_graphs(node)]
    tensors = [tensor for one in (graph, *inner) for tensor in one.initializer]
    constants = [node for node in nodes if node.op_type == "Constant"]
    tensors += [a.t for node in constants for a in node.attribute if a.HasField("t")]
    weights = [tensor for tensor in tensors if dtype_of(tensor.data_type) in WEIGHT_TYPES]
    return sum(prod(tensor.dims) for tensor in weights)


def _count_macs(model: Any, still_open: str) -> tuple[int | None, list[str]]:
    """Count the MACs of the main graph; None, with the reason, where a shape is not known."""
    shapes = shapes_of(model)
    kinds = {kind_of(node) for node in _nodes(model.graph)}
    notes = [f"the MACs of {kind} are not counted" for kind in sorted(kinds & UNCOUNTED)]
    inner = [node for one in model.graph.node for g in _inner_graphs(one) for node in _nodes(g)]
    if any(kind_of(node) in _MACS for node in inner):
        notes.append("the MACs inside If, Loop and Scan are not counted")
    total = 0
    for node, macs in zip(model.graph.node, node_macs(model, shapes), strict=True):
        if macs is None:
            return None, [*notes, still_open or _inner_open(node)]
        total += macs
    return total, notes


def node_macs(model: Any, shapes: Mapping[str, Dims]) -> list[int | None]:
    """Return the multiply-accumulates of each node of the main graph, None where not known.

    Args:
        model: ``onnx.ModelProto``.
        shapes: As ``shapes_of`` gives them.
    """
    counters = (_MACS.get(kind_of(node)) for node in model.graph.node)
    return [
        counter(node, shapes) if counter else 0
        for node, counter in zip(model.graph.node, counters, strict=True)
    ]


def _inner_open(node: Any) -> str:
    return f"MACs are not known: a shape at '{node.name or node.output[0]}' depends on the data"


Shapes = Mapping[str, Dims]
Counted = Callable[[Any, Shapes], int | None]


def _convolution(weights_at: int) -> Counted:
    """Every place of the output meets every weight once: weights [out, in / groups, kernel...]."""

    def count(node: Any, shapes: Shapes) -> int | None:
        return _places_times_weights(shapes, node.output[0], node.input[weights_at])

    return count


def _transposed_convolution(node: Any, shapes: Shapes) -> int | None:
    return _places_times_weights(shapes, node.input[0], node.input[1])


def _places_times_weights(shapes: Shapes, image: str, weights: str) -> int | None:
    size, kernel = _known(shapes, image), _known(shapes, weights)
    if size is None or kernel is None or len(size) < 2:
        return None
    return size[0] * prod(size[2:]) * prod(kernel)


def _matrix_product(node: Any, shapes: Shapes) -> int | None:
    left, out = _known(shapes, node.input[0]), _known(shapes, node.output[0])
    if not left or out is None:
        return None
    return prod(out) * left[-1]


def _gemm(node: Any, shapes: Shapes) -> int | None:
    left, out = _known(shapes, node.input[0]), _known(shapes, node.output[0])
    if left is None or out is None or len(left) != 2:
        return None
    is_transposed = any(one.name == "transA" and one.i for one in node.attribute)
    return prod(out) * left[0 if is_transposed else 1]


def _known(shapes: Shapes, name: str) -> tuple[int, ...] | None:
    dims = shapes.get(name)
    if dims is None or None in dims:
        return None
    return tuple(size for size in dims if size is not None)


_MACS: dict[str, Counted] = {
    "Conv": _convolution(1),
    "ConvInteger": _convolution(1),
    "QLinearConv": _convolution(3),
    "ConvTranspose": _transposed_convolution,
    "Gemm": _gemm,
    "MatMul": _matrix_product,
    "MatMulInteger": _matrix_product,
    "QLinearMatMul": _matrix_product,
}

"""An ONNX model made ready to be asked about: static, every node with a name; and its graph.

Runs in a child: the file is a stranger's.
"""

from __future__ import annotations

from math import prod
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import onnx

from edgert.coverage.graph import Graph, GraphNode
from edgert.errors import ModelError
from edgert.models.inspect_onnx import kind_of, node_macs
from edgert.models.onnx_shapes import dtype_of, read_model, shapes_of
from edgert.tensor import DTYPES


def make_ready(path: str, shapes: dict[str, list[int]], target: str) -> dict[str, Any]:
    """Write a copy, static and with unique node names; return its path and its graph.

    Old files list their weights among the inputs, too, so that a caller may replace them: to a
    compiler they are no constants then, and it takes minutes for what takes seconds.

    A model with weights in files of their own is left where it is: they may be gigabytes.

    Args:
        path: The model.
        shapes: Sizes for inputs, open ones and others.
        target: The copy.

    Raises:
        ModelError: It is damaged, or ``shapes`` do not fit.
    """
    model = read_model(path, shapes).model
    if _check_weights(model, Path(path)):
        if shapes:
            fault = "it has weights in files of their own, and sizes that have to be fixed"
            mend = "Fix them in the file: python -m onnxruntime.tools.make_dynamic_shape_fixed"
            raise ModelError(f"model '{Path(path).name}'", fault, mend)
        target = path
    else:
        _name_nodes(model)
        _settle_weights(model)
        onnx.save(model, target)
    return {"path": target, "graph": msgspec.to_builtins(_placeable(model))}


def read_graph(path: str) -> Graph:
    """Return the graph of a file as it is.

    Raises:
        ModelError: It is damaged.
    """
    model = read_model(path, {}).model
    _name_nodes(model)
    return _placeable(model)


def _settle_weights(model: Any) -> None:
    """Leave as inputs only what the caller must give."""
    weights = {tensor.name for tensor in model.graph.initializer}
    needed = [value for value in model.graph.input if value.name not in weights]
    del model.graph.input[:]
    model.graph.input.extend(needed)


def _placeable(model: Any) -> Graph:
    """Return the graph without its Constant nodes: they are weights, which run nowhere."""
    graph = graph_of(model)
    nodes = [node for node in graph.nodes if node.operator != "Constant"]
    return msgspec.structs.replace(graph, nodes=nodes)


def _name_nodes(model: Any) -> None:
    taken: set[str] = set()
    for number, node in enumerate(model.graph.node):
        if not node.name or node.name in taken:
            node.name = f"{node.op_type}#{number}"
        taken.add(node.name)


def graph_of(model: Any) -> Graph:
    """Return the graph of a model whose nodes have unique names."""
    shapes = shapes_of(model)
    weights = {tensor.name for tensor in model.graph.initializer}
    weights |= {tensor.values.name for tensor in model.graph.sparse_initializer}
    macs = node_macs(model, shapes)
    nodes = [
        GraphNode(
            name=node.name,
            operator=kind_of(node),
            inputs=tuple(name for name in reads(node) if name not in weights),
            outputs=tuple(filter(None, node.output)),
            macs=count,
        )
        for node, count in zip(model.graph.node, macs, strict=True)
    ]
    return Graph(nodes=nodes, sizes=_sizes(model, shapes))


def reads(node: Any) -> list[str]:
    """Return the tensors that a node reads, those that only its inner graphs read, too."""
    found = dict.fromkeys(filter(None, node.input))
    for attribute in node.attribute:
        for inner in (attribute.g, *attribute.graphs):
            made = {value.name for value in (*inner.input, *inner.initializer)}
            for each in inner.node:
                found |= dict.fromkeys(name for name in reads(each) if name not in made)
                made.update(each.output)
            found |= dict.fromkeys(one.name for one in inner.output if one.name not in made)
    return list(found)


def _sizes(model: Any, shapes: Any) -> dict[str, int]:
    values = (*model.graph.input, *model.graph.value_info, *model.graph.output)
    sizes = {}
    for value in values:
        dims = shapes.get(value.name)
        dtype = DTYPES.get(dtype_of(value.type.tensor_type.elem_type))
        if dims is not None and None not in dims and dtype is not None:
            sizes[value.name] = prod(dims) * np.dtype(dtype).itemsize
    return sizes


def _check_weights(model: Any, path: Path) -> bool:
    """Return whether weights lie in files beside the model.

    Raises:
        ModelError: Such a file is not there, or is outside the model's folder.
    """
    folder = path.resolve().parent
    entries = [entry for tensor in model.graph.initializer for entry in tensor.external_data]
    names = {entry.value for entry in entries if entry.key == "location"}
    for name in sorted(names):
        source = (folder / name).resolve()
        if not source.is_relative_to(folder) or not source.is_file():
            fault = f"its weights '{name}' are not beside it"
            raise ModelError(f"model '{path.name}'", fault, "Fetch every file of the model")
    return bool(names)

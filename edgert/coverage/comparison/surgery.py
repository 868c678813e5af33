"""What is done to an ONNX model to look inside of it. Runs in a child: the file is a stranger's.

open_up   the whole, its constants made weights, and its graph
tap       the whole, with tensors in its middle as further outputs
cut       some of its nodes alone, fed with what the reference has where they are cut out
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import onnx
from onnx import helper

from edgert.coverage import values
from edgert.coverage.suites.onnx_graph import graph_of, reads
from edgert.coverage.values import Value
from edgert.errors import ModelError
from edgert.version import __version__


def open_up(path: str, target: str) -> dict[str, Any]:
    """Write a copy whose Constant nodes are weights; return its graph and its outputs.

    A constant has no input and would be fed to every sub-model as one: compilers treat both alike,
    but not an input.
    """
    model = onnx.load(path)
    for node in [node for node in model.graph.node if _is_plain_constant(node)]:
        weight = node.attribute[0].t
        weight.name = node.output[0]
        model.graph.initializer.append(weight)
        model.graph.node.remove(node)
    onnx.save(model, target)
    outputs = [value.name for value in model.graph.output]
    return {"graph": msgspec.to_builtins(graph_of(model)), "outputs": outputs}


def tap(path: str, tensors: list[str], target: str) -> list[str]:
    """Write a copy that gives some tensors, too; return those that it gives besides its own.

    What is no tensor (a sequence), or is not known to be one, is left out.
    """
    model = onnx.load(path)
    own = {value.name for value in model.graph.output}
    known = {value.name: value for value in model.graph.value_info}
    added = [name for name in tensors if name not in own and _is_tensor(known.get(name))]
    model.graph.output.extend(known[name] for name in added)
    onnx.save(model, target)
    return added


def cut(path: str, nodes: list[str], inputs: str, expected: str, target: str) -> None:
    """Write a model of some nodes.

    Args:
        path: The whole, as ``open_up`` wrote it.
        nodes: Names of the nodes.
        inputs: File of what they are fed with (``values.py``): these become the inputs.
        expected: File of what the reference has of their outputs: these become the outputs.
        target: The model of those nodes.

    Raises:
        ModelError: It would have an input or output that is no tensor.
    """
    whole = onnx.load(path)
    wanted = set(nodes)
    kept = [node for node in whole.graph.node if node.name in wanted]
    read = {name for node in kept for name in reads(node)}
    graph = helper.make_graph(
        kept,
        f"cut of {whole.graph.name}",
        list(_infos(values.load(Path(inputs)), path)),
        list(_infos(values.load(Path(expected)), path)),
        [weight for weight in whole.graph.initializer if weight.name in read],
    )
    graph.sparse_initializer.extend(
        weight for weight in whole.graph.sparse_initializer if weight.values.name in read
    )
    model = helper.make_model(
        graph,
        producer_name="edgert compare",
        producer_version=__version__,
        opset_imports=whole.opset_import,
        ir_version=whole.ir_version,
    )
    onnx.save(model, target)


def _is_plain_constant(node: Any) -> bool:
    is_ours = node.op_type == "Constant" and node.domain in ("", "ai.onnx")
    return is_ours and len(node.attribute) == 1 and node.attribute[0].HasField("t")


def _is_tensor(value: Any) -> bool:
    return value is not None and value.type.tensor_type.elem_type != 0


def _infos(found: Mapping[str, Value], path: str) -> Iterator[Any]:
    for name, value in found.items():
        if not isinstance(value, np.ndarray):
            raise ModelError(f"model '{Path(path).name}'", f"'{name}' in its middle is no tensor")
        yield helper.make_tensor_value_info(name, _element(value), value.shape)


def _element(array: Any) -> int:
    if array.dtype.kind in "OUS":
        return int(onnx.TensorProto.STRING)
    return int(helper.np_dtype_to_tensor_dtype(array.dtype))

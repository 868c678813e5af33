"""A float graph with quantise-dequantise pairs, as quantisation after training leaves it."""

from __future__ import annotations

from typing import Any

import numpy as np

from edgert.coverage.values import Array, Values

_ZERO = np.zeros((), np.int8)
_OLDEST_OPSET = 10  # QuantizeLinear and DequantizeLinear came with it


def quantised(model: Any, inputs: Values, outputs: Values) -> tuple[Any, float]:
    """Put int8 around every f32 tensor of a model.

    Args:
        model: ``onnx.ModelProto`` with its parameters as initializers.
        inputs: Values of its inputs, which give the scales.
        outputs: Values of its outputs, which give theirs.

    Returns:
        The new model, and the coarsest step of an output.

    Raises:
        ValueError: It has nothing to quantise, or is older than these operators.
    """
    from onnx import ModelProto

    opset = max((each.version for each in model.opset_import if not each.domain), default=0)
    if opset < _OLDEST_OPSET:
        msg = f"operator set {opset} has no QuantizeLinear"
        raise ValueError(msg)
    made = ModelProto()
    made.CopyFrom(model)
    floats = {name: value for name, value in inputs.items() if _is_f32(value)}
    results = {name: value for name, value in outputs.items() if _is_f32(value)}
    if not floats or not results:
        msg = "it has no f32 input and output"
        raise ValueError(msg)
    before = [node for name, value in floats.items() for node in _pair_before(made, name, value)]
    before += _frozen_pairs(made)
    after, steps = [], []
    for name, value in results.items():
        nodes, step = _pair_after(made, name, value)
        after += nodes
        steps.append(step)
    own = list(made.graph.node)
    del made.graph.node[:]
    made.graph.node.extend([*before, *own, *after])
    return made, max(steps)


def _is_f32(value: object) -> bool:
    return isinstance(value, np.ndarray) and value.dtype == np.float32 and value.size > 0


def _scale(value: Any) -> Array:
    """Return the step of symmetric int8 levels that reach the largest magnitude."""
    finite = value[np.isfinite(value)]
    largest = float(np.abs(finite).max(initial=0.0))
    return np.asarray(largest / 127 or 1 / 127, np.float32)


def _pair_before(model: Any, name: str, value: Any) -> list[Any]:
    """Let everything that read an input read it quantised and dequantised."""
    for node in model.graph.node:
        for index, source in enumerate(node.input):
            if source == name:
                node.input[index] = f"{name}_dq"
    return _pair(model, name, f"{name}_dq", _scale(value))


def _pair_after(model: Any, name: str, value: Any) -> tuple[list[Any], float]:
    """Let a result come out quantised and dequantised."""
    for node in model.graph.node:
        for index, made in enumerate(node.output):
            if made == name:
                node.output[index] = f"{name}_raw"
        for index, read in enumerate(node.input):
            if read == name:
                node.input[index] = f"{name}_raw"
    scale = _scale(value)
    return _pair(model, f"{name}_raw", name, scale), float(scale)


def _pair(model: Any, source: str, target: str, scale: Array) -> list[Any]:
    from onnx import helper, numpy_helper

    stem = f"{target}_q"
    model.graph.initializer.append(numpy_helper.from_array(scale, f"{stem}_scale"))
    model.graph.initializer.append(numpy_helper.from_array(_ZERO, f"{stem}_zero"))
    parameters = [f"{stem}_scale", f"{stem}_zero"]
    return [
        helper.make_node("QuantizeLinear", [source, *parameters], [stem]),
        helper.make_node("DequantizeLinear", [stem, *parameters], [target]),
    ]


def _frozen_pairs(model: Any) -> list[Any]:
    """Keep f32 parameters as int8, dequantised where they are read."""
    from onnx import helper, numpy_helper

    nodes = []
    read = {name for node in model.graph.node for name in node.input}
    for tensor in [one for one in model.graph.initializer if one.name in read]:
        value = numpy_helper.to_array(tensor)
        if not _is_f32(value):
            continue
        name, scale = tensor.name, _scale(value)
        levels = np.clip(np.rint(np.nan_to_num(value / scale)), -127, 127).astype(np.int8)
        model.graph.initializer.remove(tensor)
        model.graph.initializer.append(numpy_helper.from_array(levels, f"{name}_i8"))
        model.graph.initializer.append(numpy_helper.from_array(scale, f"{name}_step"))
        model.graph.initializer.append(numpy_helper.from_array(_ZERO, f"{name}_origin"))
        parameters = [f"{name}_i8", f"{name}_step", f"{name}_origin"]
        nodes.append(helper.make_node("DequantizeLinear", parameters, [name]))
    return nodes

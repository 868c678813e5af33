"""What ONNX Runtime is given to read: the model's file, or its graph with other inputs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from edgert.backends.base import ByteInput
from edgert.backends.byte_input import factor_and_offset, require_convertible
from edgert.backends.mends import FETCH_AGAIN, LOOK_AT_INPUTS
from edgert.errors import ModelError
from edgert.tensor import DTYPES, TensorSpec

_OURS = {theirs: ours for ours, theirs in DTYPES.items()}
# Names of what is put in; no exporter writes such.
_PREFIX = "edgert bytes of "


class Graph(NamedTuple):
    """A model as ONNX Runtime gets it.

    Attributes:
        source: The path, or the bytes of a model that was rewritten.
        own: What the model itself has, where an input was replaced by bytes.
    """

    source: str | bytes
    own: dict[str, TensorSpec]


def read_graph(
    path: str, shapes: Mapping[str, list[int]], conversions: Mapping[str, ByteInput]
) -> Graph:
    """Return the model with other shapes, and with inputs of u8 where those are given as bytes.

    Raises:
        ModelError: It is no ONNX model, or has no such input.
    """
    place = f"model {Path(path).name!r}"
    if not Path(path).is_file():
        raise ModelError(place, f"there is no file {path}")
    if not shapes and not conversions:
        return Graph(path, {})
    model = _load(path, place)
    _fix_weights(model.graph)
    if shapes:
        _reshape(model, shapes, place)
    own = {
        name: _take_bytes(model.graph, name, conversion, Path(path).name)
        for name, conversion in conversions.items()
    }
    return Graph(model.SerializeToString(), own)


def _load(path: str, place: str) -> Any:
    try:
        import onnx
        from google.protobuf.message import DecodeError
    except ImportError as error:
        mend = "Run: pip install 'edgert[onnxruntime]'"
        raise ModelError(place, "fixing shapes and taking bytes needs onnx", mend) from error
    try:
        return onnx.load(path, load_external_data=False)
    except DecodeError as error:
        raise ModelError(place, f"it is not an ONNX model: {error}", FETCH_AGAIN) from error


def _fix_weights(graph: Any) -> None:
    """Take weights out of the inputs, where old exporters list them: nobody gives others.

    As long as somebody could, ONNX Runtime fuses nothing with them (CenterFace takes 2.7 times as
    long), and warns of each.
    """
    weights = {tensor.name for tensor in graph.initializer}
    inputs = [value for value in graph.input if value.name not in weights]
    del graph.input[:]
    graph.input.extend(inputs)


def _reshape(model: Any, shapes: Mapping[str, list[int]], place: str) -> None:
    """Write other input shapes; those of the outputs are inferred anew."""
    inputs = {value.name: value.type.tensor_type.shape.dim for value in model.graph.input}
    for name, shape in shapes.items():
        dimensions = inputs.get(name)
        if dimensions is None:
            known = ", ".join(inputs)
            raise ModelError(f"{place}, shape", f"it has no input {name!r}", f"It has: {known}")
        if len(dimensions) != len(shape):
            fault = f"input {name!r} has {len(dimensions)} dimensions, not {shape}"
            raise ModelError(f"{place}, shape", fault, LOOK_AT_INPUTS)
        for dimension, size in zip(dimensions, shape, strict=True):
            dimension.dim_value = size
    for output in model.graph.output:
        output.type.tensor_type.ClearField("shape")
    del model.graph.value_info[:]


def _take_bytes(graph: Any, name: str, conversion: ByteInput, model: str) -> TensorSpec:
    """Make an input u8, with the conversion behind it; return what it was."""
    from onnx import TensorProto, helper

    inputs = {value.name: value for value in graph.input}
    own = _spec_of(inputs[name]) if name in inputs else None
    spec = require_convertible(name, own, conversion, model)
    if any(output.name == name for output in graph.output):
        raise ModelError(f"model {model!r}, bytes", f"its input {name!r} is an output, too")
    converted = f"{_PREFIX}{name}"
    _rename_uses(graph, name, converted)
    tensor = inputs[name].type.tensor_type
    nodes = [*_conversion(helper, name, converted, tensor.elem_type, conversion), *graph.node]
    tensor.elem_type = TensorProto.UINT8
    del graph.node[:]
    graph.node.extend(nodes)
    return spec


def _conversion(
    helper: Any, name: str, converted: str, own_type: int, conversion: ByteInput
) -> Iterator[Any]:
    values = factor_and_offset(conversion)
    if values is None:
        yield helper.make_node("Cast", [name], [converted], to=own_type)
        return
    from onnx import TensorProto, numpy_helper

    floats, product, total = (f"{converted}: {step}" for step in ("floats", "product", "sum"))
    factor, offset = f"{converted}: factor", f"{converted}: offset"
    for constant, array in zip((factor, offset), values, strict=True):
        yield helper.make_node("Constant", [], [constant], value=numpy_helper.from_array(array))
    yield helper.make_node("Cast", [name], [floats], to=TensorProto.FLOAT)
    yield helper.make_node("Mul", [floats, factor], [product])
    yield helper.make_node("Add", [product, offset], [total])
    yield helper.make_node("Cast", [total], [converted], to=own_type)


def _rename_uses(graph: Any, name: str, to: str) -> None:
    """Let every node read ``to`` instead, also those inside of branches and loops."""
    for node in graph.node:
        for position, read in enumerate(node.input):
            if read == name:
                node.input[position] = to
        for attribute in node.attribute:
            for body in (attribute.g, *attribute.graphs):
                _rename_uses(body, name, to)


def _spec_of(value: Any) -> TensorSpec:
    from onnx import helper

    tensor = value.type.tensor_type
    theirs = helper.tensor_dtype_to_np_dtype(tensor.elem_type).name
    sizes = (size.dim_value or None for size in tensor.shape.dim)
    return TensorSpec(_OURS.get(theirs, theirs), tuple(sizes))

"""Reading an ONNX file and inferring its shapes; runs in a child process, imports ``onnx``."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import onnx
import onnx.inliner
import onnx.shape_inference

from edgert.errors import ModelError
from edgert.tensor import TensorSpec

Dims = tuple[int | None, ...]

# Imported by name: protobuf comes with onnx, its type stubs do not.
_DecodeError: Any = import_module("google.protobuf.message").DecodeError

_DTYPES: dict[int, str] = {
    onnx.TensorProto.FLOAT: "f32",
    onnx.TensorProto.FLOAT16: "f16",
    onnx.TensorProto.BFLOAT16: "bf16",
    onnx.TensorProto.DOUBLE: "f64",
    onnx.TensorProto.UINT4: "u4",
    onnx.TensorProto.UINT8: "u8",
    onnx.TensorProto.UINT16: "u16",
    onnx.TensorProto.UINT32: "u32",
    onnx.TensorProto.UINT64: "u64",
    onnx.TensorProto.INT4: "i4",
    onnx.TensorProto.INT8: "i8",
    onnx.TensorProto.INT16: "i16",
    onnx.TensorProto.INT32: "i32",
    onnx.TensorProto.INT64: "i64",
    onnx.TensorProto.BOOL: "bool",
}


def dtype_of(element: int) -> str:
    """Return our name of an ONNX element type; ONNX's own, lower-case, where we have none."""
    if element in _DTYPES:
        return _DTYPES[element]
    names = onnx.TensorProto.DataType
    return names.Name(element).lower() if element in names.values() else f"type {element}"


class Read(NamedTuple):
    """A model that was read.

    Attributes:
        model: ``onnx.ModelProto``, with the shapes of everything in between.
        replaced: Inputs that the file declares with other sizes, as it does.
    """

    model: Any
    replaced: dict[str, TensorSpec]


def read_model(path: str, shapes: dict[str, list[int]]) -> Read:
    """Read a file, fix ``shapes``, and infer the shapes of everything in between.

    Sizes that the file declares are replaced, as runtimes do it; what contradicts them further on
    is a fault, as far as ONNX's rules for shapes tell.

    Raises:
        ModelError: It is damaged, or ``shapes`` do not fit.
    """
    place = f"model '{Path(path).name}'"
    try:
        # Weights in files beside it are not needed to count them.
        model = onnx.load(path, load_external_data=False)
    except _DecodeError as error:
        raise ModelError(place, f"is damaged: {error}", "Fetch it again") from None
    if not model.graph.output:
        raise ModelError(place, "is damaged: there is no graph in it", "Fetch it again")
    if model.functions:
        model = onnx.inliner.inline_local_functions(model)
    declared, _ = specs_of(model)
    replaced = {
        name: declared[name] for name, sizes in shapes.items() if _fix(model, name, sizes, place)
    }
    if shapes:
        _forget_shapes(model)
    try:
        inferred = onnx.shape_inference.infer_shapes(
            model, data_prop=True, strict_mode=bool(replaced)
        )
    except onnx.shape_inference.InferenceError as error:
        said = " ".join(str(error).split())
        raise ModelError(place, f"its shapes contradict one another: {said}") from None
    return Read(inferred, replaced)


def specs_of(model: Any) -> tuple[dict[str, TensorSpec], dict[str, TensorSpec]]:
    """Return inputs, without the weights that old files list among them, and outputs."""
    return _specs(_inputs(model)), _specs(model.graph.output)


def shapes_of(model: Any) -> dict[str, Dims]:
    """Return what is known of the shape of every tensor of the main graph."""
    graph = model.graph
    values = (*graph.input, *graph.value_info, *graph.output)
    shapes = {value.name: dims for value in values if (dims := _dims(value)) is not None}
    return {**shapes, **{tensor.name: tuple(tensor.dims) for tensor in graph.initializer}}


def without_rank(model: Any) -> list[str]:
    """Say which inputs and outputs are no tensors, or tensors of unknown rank."""
    values = (*model.graph.input, *model.graph.output)
    return [f"the shape of '{one.name}' is not known" for one in values if _dims(one) is None]


def open_dimensions(inputs: dict[str, TensorSpec]) -> str:
    """Say which inputs leave MACs unknown; empty where none does."""
    still_open = [f"{name} {spec}" for name, spec in inputs.items() if not spec.is_static]
    if not still_open:
        return ""
    return f"MACs are not known while sizes are open: {', '.join(still_open)}; give --shape"


def _inputs(model: Any) -> list[Any]:
    weights = {tensor.name for tensor in model.graph.initializer}
    return [value for value in model.graph.input if value.name not in weights]


def _specs(values: Any) -> dict[str, TensorSpec]:
    return {
        value.name: TensorSpec(dtype_of(value.type.tensor_type.elem_type), _dims(value) or ())
        for value in values
    }


def _dims(value: Any) -> Dims | None:
    tensor = value.type.tensor_type
    if not value.type.HasField("tensor_type") or not tensor.HasField("shape"):
        return None
    return tuple(
        dim.dim_value if dim.HasField("dim_value") and dim.dim_value > 0 else None
        for dim in tensor.shape.dim
    )


def _fix(model: Any, name: str, sizes: list[int], place: str) -> bool:
    """Give an input its sizes; return whether one that the file declares was replaced."""
    found = {value.name: value for value in _inputs(model)}
    if name not in found:
        raise ModelError(place, f"has no input '{name}'", f"Its inputs: {', '.join(found)}")
    declared = _dims(found[name])
    if declared is not None and len(declared) != len(sizes):
        spec = _specs([found[name]])[name]
        raise ModelError(place, f"input '{name}' is {spec}, {sizes} does not fit")
    shape = found[name].type.tensor_type.shape
    del shape.dim[:]
    for size in sizes:
        shape.dim.add().dim_value = size
    return any(was not in (None, now) for was, now in zip(declared or (), sizes, strict=False))


def _forget_shapes(model: Any) -> None:
    """Drop what was declared of open sizes further on: it is inferred again from the fixed ones."""
    del model.graph.value_info[:]
    for output in model.graph.output:
        output.type.tensor_type.ClearField("shape")

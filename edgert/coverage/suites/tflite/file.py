"""TFLite files, written by way of the schema that ai-edge-litert brings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import flatbuffers
import numpy as np
from ai_edge_litert import schema_py_generated as schema

from edgert.tensor import DTYPES

TYPES = {
    "u8": schema.TensorType.UINT8,
    "i8": schema.TensorType.INT8,
    "i16": schema.TensorType.INT16,
    "i32": schema.TensorType.INT32,
    "i64": schema.TensorType.INT64,
    "f16": schema.TensorType.FLOAT16,
    "f32": schema.TensorType.FLOAT32,
    "f64": schema.TensorType.FLOAT64,
    "bool": schema.TensorType.BOOL,
    "string": schema.TensorType.STRING,
}
_ENUMERATIONS = {
    "padding": schema.Padding,
    "fusedActivationFunction": schema.ActivationFunctionType,
    "mode": schema.MirrorPadMode,
}
_LARGEST_OLD_CODE = 127  # newer operators do not fit into the byte that older readers look at
Shape = Sequence[int | str]


class Graph:
    """A subgraph that grows by one operator a call; tensors are numbers."""

    def __init__(self, model: Model) -> None:
        self.model = model
        self.parts = schema.SubGraphT()
        self.parts.tensors, self.parts.operators = [], []
        self.parts.inputs, self.parts.outputs = [], []
        model.parts.subgraphs.append(self.parts)

    def tensor(
        self,
        shape: Shape,
        dtype: str = "f32",
        name: str = "",
        quantised: float = 0,
        buffer: int = 0,
    ) -> int:
        """Add a tensor; a word as a size leaves it open.

        Args:
            shape: Its sizes.
            dtype: Our name of its type.
            name: Its name; a number if empty.
            quantised: Scale of levels around zero; 0 for none.
            buffer: Of its values; 0 for none.
        """
        tensor = schema.TensorT()
        tensor.shape = [size if isinstance(size, int) else 1 for size in shape]
        if any(isinstance(size, str) for size in shape):
            tensor.shapeSignature = [size if isinstance(size, int) else -1 for size in shape]
        # OpenVINO tells tensors apart by their names.
        unique = name or f"{len(self.model.parts.subgraphs)}/{len(self.parts.tensors)}"
        tensor.type, tensor.name, tensor.buffer = TYPES[dtype], unique.encode(), buffer
        self.parts.tensors.append(tensor)
        number = len(self.parts.tensors) - 1
        if quantised:
            self.quantise(number, [quantised], [0])
        return number

    def quantise(
        self, number: int, scale: Sequence[float], zero: Sequence[int], axis: int = 0
    ) -> None:
        """Say what the levels of a tensor stand for: along an axis, or all the same."""
        found = schema.QuantizationParametersT()
        found.scale, found.zeroPoint = list(scale), list(zero)
        found.quantizedDimension = axis
        self.parts.tensors[number].quantization = found

    def input(self, name: str, shape: Shape, dtype: str = "f32", quantised: float = 0) -> int:
        """Add a tensor that is an input."""
        self.parts.inputs.append(self.tensor(shape, dtype, name, quantised))
        return int(self.parts.inputs[-1])

    def constant(self, value: Any) -> int:
        """Add a tensor with its values."""
        array = np.asarray(value)
        ours = next(ours for ours, theirs in DTYPES.items() if theirs == array.dtype.name)
        return self.tensor(array.shape, ours, buffer=self.model.buffer(array.tobytes()))

    def add(self, code: str, inputs: Sequence[int], output: int, options: Any = None) -> int:
        """Add an operator with one output; return that."""
        self.operator(self.model.code(code), inputs, [output], options)
        return output

    def operator(
        self, code: int, inputs: Sequence[int], outputs: Sequence[int], options: Any = None
    ) -> None:
        """Add an operator; an input of -1 is absent."""
        operator = schema.OperatorT()
        operator.opcodeIndex = code
        operator.inputs, operator.outputs = list(inputs), list(outputs)
        if options is not None:
            kind = type(options).__name__.removesuffix("T")
            if hasattr(schema.BuiltinOptions, kind):
                operator.builtinOptionsType = getattr(schema.BuiltinOptions, kind)
                operator.builtinOptions = options
            else:
                operator.builtinOptions2Type = getattr(schema.BuiltinOptions2, kind)
                operator.builtinOptions2 = options
        self.parts.operators.append(operator)

    def output(self, *tensors: int) -> None:
        """Make outputs of tensors."""
        self.parts.outputs += tensors


class Model:
    """A model with its first subgraph."""

    def __init__(self) -> None:
        self.parts = schema.ModelT()
        self.parts.version, self.parts.description = 3, b"edgert"
        self.parts.buffers, self.parts.operatorCodes = [schema.BufferT()], []
        self.parts.subgraphs = []
        self._codes: list[str] = []
        self.graph = Graph(self)

    def buffer(self, content: bytes) -> int:
        """Add values; return their number."""
        buffer = schema.BufferT()
        buffer.data = np.frombuffer(content, np.uint8)
        self.parts.buffers.append(buffer)
        return len(self.parts.buffers) - 1

    def code(self, name: str, version: int = 1) -> int:
        """Return the number of an operator here; one that the schema has not is a custom one."""
        if name not in self._codes:
            entry = schema.OperatorCodeT()
            number = getattr(schema.BuiltinOperator, name, schema.BuiltinOperator.CUSTOM)
            if number == schema.BuiltinOperator.CUSTOM:
                entry.customCode = name.encode()
            entry.builtinCode = number
            entry.deprecatedBuiltinCode = min(number, _LARGEST_OLD_CODE)
            entry.version = version
            self.parts.operatorCodes.append(entry)
            self._codes.append(name)
        return self._codes.index(name)

    def note(self, key: str, content: bytes) -> None:
        """Add metadata."""
        entry = schema.MetadataT()
        entry.name, entry.buffer = key.encode(), self.buffer(content)
        self.parts.metadata = [entry]

    def save(self, path: Path) -> Path:
        """Write the file."""
        builder = flatbuffers.Builder(1024)
        builder.Finish(self.parts.Pack(builder), b"TFL3")
        path.write_bytes(builder.Output())
        return path


def options(table: str, fields: Mapping[str, Any]) -> Any:
    """Return the attributes of an operator; words stand for enumerations and types."""
    if not table:
        return None
    made = getattr(schema, f"{table}T")()
    for name, value in fields.items():
        if not hasattr(made, name):
            msg = f"{table} has no field {name}"
            raise AttributeError(msg)
        setattr(made, name, _number(name, value))
    return made


def _number(name: str, value: Any) -> Any:
    if not isinstance(value, str):
        return value
    return getattr(_ENUMERATIONS[name], value) if name in _ENUMERATIONS else TYPES[value]

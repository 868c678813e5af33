"""Values in and out of ONNX Runtime of element types that numpy has not: by their bytes."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from typing import Any

import numpy as np
import onnxruntime as ort
from onnx import TensorProto

from edgert.coverage.adapters.bits import STRANGE, pack, unpack
from edgert.coverage.values import Array, Value, Values

# ONNX Runtime's name of a type -> numpy's name by ml_dtypes, ONNX's number.
_STRANGE: dict[str, tuple[str, int]] = {
    "bfloat16": ("bfloat16", TensorProto.BFLOAT16),
    "float8e4m3fn": ("float8_e4m3fn", TensorProto.FLOAT8E4M3FN),
    "float8e4m3fnuz": ("float8_e4m3fnuz", TensorProto.FLOAT8E4M3FNUZ),
    "float8e5m2": ("float8_e5m2", TensorProto.FLOAT8E5M2),
    "float8e5m2fnuz": ("float8_e5m2fnuz", TensorProto.FLOAT8E5M2FNUZ),
    "float8e8m0": ("float8_e8m0fnu", TensorProto.FLOAT8E8M0),
    "float4e2m1": ("float4_e2m1fn", TensorProto.FLOAT4E2M1),
    "int4": ("int4", TensorProto.INT4),
    "uint4": ("uint4", TensorProto.UINT4),
    "int2": ("int2", TensorProto.INT2),
    "uint2": ("uint2", TensorProto.UINT2),
}


def runner(session: Any) -> Any:
    """Return a function from inputs to outputs by name: the plain one where the types allow it."""
    values = (*session.get_inputs(), *session.get_outputs())
    names = [output.name for output in session.get_outputs()]
    if any(_element(value.type) in _STRANGE for value in values):
        return lambda inputs: _run_by_bytes(session, inputs)
    return lambda inputs: dict(zip(names, session.run(None, dict(inputs)), strict=True))


def known_inputs(session: Any, inputs: Values) -> Mapping[str, Value]:
    """Return the inputs that the session has: constants may have been folded."""
    known = {value.name for value in session.get_inputs()}
    return {name: value for name, value in inputs.items() if name in known}


def _run_by_bytes(session: Any, inputs: Values) -> dict[str, Value]:
    types = {value.name: _element(value.type) for value in session.get_inputs()}
    given = {name: _to_ort(value, types[name]) for name, value in inputs.items()}
    outputs = session.get_outputs()
    found = session.run_with_ort_values([output.name for output in outputs], given)
    return {
        output.name: _from_ort(value, _element(output.type))
        for output, value in zip(outputs, found, strict=True)
    }


def _element(type_text: str) -> str:
    return type_text.removeprefix("tensor(").removesuffix(")")


def _to_ort(value: Value, element: str) -> Any:
    array = np.asarray(value)
    if element not in _STRANGE:
        return ort.OrtValue.ortvalue_from_numpy(array)
    name, number = _STRANGE[element]
    made = ort.OrtValue.ortvalue_from_shape_and_type(list(array.shape), number)
    data = pack(array, STRANGE[name][1])
    ctypes.memmove(made.data_ptr(), data, len(data))
    return made


def _from_ort(value: Any, element: str) -> Value:
    if element not in _STRANGE:
        got: Array = value.numpy()
        return got
    data = ctypes.string_at(value.data_ptr(), value.tensor_size_in_bytes())
    return unpack(data, _STRANGE[element][0], value.shape())

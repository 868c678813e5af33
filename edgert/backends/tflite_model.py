"""A TFLite model as an interpreter shows it: opened, shapes fixed, inputs and outputs named."""

from __future__ import annotations

import platform
from collections.abc import Mapping, Sequence
from mmap import ACCESS_READ, mmap
from pathlib import Path
from typing import Any

import numpy as np

from edgert.backends.base import Signature
from edgert.backends.mends import CONVERT_TENSOR, FETCH_AGAIN, LOOK_AT_INPUTS
from edgert.backends.tflite_runtime import ERRORS, lite, reason
from edgert.errors import ModelError
from edgert.tensor import DTYPES, Quantisation, TensorSpec

_OURS = {theirs: ours for ours, theirs in DTYPES.items()}
_REDUCED_PRECISION = b"reduced_precision_support"  # the key of the model's metadata
_NEVER_ROUNDING = ("x86_64", "AMD64")
_STRINGS = ("bytes", "object", "str")


def open_model(path: str, threads: int, *, xnnpack: bool, delegates: Sequence[Any] = ()) -> Any:
    """Return an interpreter of a model file, which it maps; no tensor is allocated yet.

    Raises:
        ModelError: It is not a model that TFLite reads.
        RuntimeError, ValueError: Where there are delegates: one of them refuses the model, too.
    """
    place = f"model {Path(path).name!r}"
    if not Path(path).is_file():
        raise ModelError(place, f"there is no file {path}")
    kinds = lite.OpResolverType
    try:
        return lite.Interpreter(
            model_path=path,
            num_threads=threads,
            experimental_delegates=list(delegates),
            experimental_op_resolver_type=(
                kinds.AUTO if xnnpack else kinds.BUILTIN_WITHOUT_DEFAULT_DELEGATES
            ),
        )
    except ERRORS as error:
        if delegates:
            raise
        fault = f"TFLite cannot read it: {reason(error)}"
        raise ModelError(place, fault, FETCH_AGAIN) from error


def fix_shapes(interpreter: Any, shapes: Mapping[str, list[int]], path: str) -> None:
    """Give inputs the sizes that were asked for.

    Raises:
        ModelError: There is no such input, or it has another number of dimensions.
    """
    place = f"model {Path(path).name!r}, shape"
    inputs = named(_details(interpreter.get_input_details, path), "input")
    wanted = {name.removesuffix(":0"): shape for name, shape in shapes.items()}
    for name, shape in wanted.items():
        if name not in inputs:
            raise ModelError(place, f"it has no input {name!r}", f"Its inputs: {', '.join(inputs)}")
        rank = len(inputs[name]["shape"])
        if len(shape) != rank:
            fault = f"input {name!r} has {rank} dimensions, not {shape}"
            raise ModelError(place, fault, LOOK_AT_INPUTS)
        interpreter.resize_tensor_input(inputs[name]["index"], shape)


def allocate(interpreter: Any, shapes: Mapping[str, list[int]], path: str) -> bool:
    """Let TFLite work out the size of every tensor; return whether it could.

    It cannot while inputs are open, nor where an operator is a delegate's own.

    Raises:
        ModelError: The shapes that were asked for do not fit the model.
    """
    if _open_inputs(interpreter, shapes, path):
        return False
    try:
        interpreter.allocate_tensors()
    except ERRORS as error:
        if not shapes:
            return False
        place = f"model {Path(path).name!r}, shape"
        fault = f"the shape does not fit the model: {reason(error)}"
        raise ModelError(place, fault, LOOK_AT_INPUTS) from error
    return True


def signature_of(
    interpreter: Any, shapes: Mapping[str, list[int]], path: str, *, allocated: bool
) -> Signature:
    """Return inputs and outputs; a size that an inference decides is None.

    Raises:
        ModelError: There are elements that no slot carries.
    """
    fixed = {name.removesuffix(":0"): shape for name, shape in shapes.items()}
    inputs = named(_details(interpreter.get_input_details, path), "input")
    outputs = named(_details(interpreter.get_output_details, path), "output")
    # Types first: the memory of a tensor of strings must not be looked at.
    given, made = _dtypes(inputs, path), _dtypes(outputs, path)
    sizes = {name: _sizes(fixed.get(name, declared(it))) for name, it in inputs.items()}
    results = {
        name: _result_sizes(interpreter, it) if allocated else _sizes(declared(it))
        for name, it in outputs.items()
    }
    return Signature(
        {
            name: TensorSpec(given[name], sizes[name], _quantisation(inputs[name]))
            for name in inputs
        },
        {
            name: TensorSpec(made[name], results[name], _quantisation(outputs[name]))
            for name in outputs
        },
    )


def _quantisation(detail: Mapping[str, Any]) -> Quantisation | None:
    """Return the scale and zero point of a tensor that has one of each."""
    scales = detail["quantization_parameters"]["scales"]
    zero_points = detail["quantization_parameters"]["zero_points"]
    if len(scales) != 1 or not scales[0]:
        return None
    return Quantisation(float(scales[0]), int(zero_points[0]) if len(zero_points) else 0)


def named(details: Sequence[Mapping[str, Any]], kind: str) -> dict[str, Mapping[str, Any]]:
    """Return tensors by their names: without TensorFlow's ``:0``, as OpenVINO calls them."""
    found: dict[str, Mapping[str, Any]] = {}
    for number, detail in enumerate(details):
        name = detail["name"].removesuffix(":0")
        found[name if name and name not in found else f"{kind}{number}"] = detail
    return found


def may_be_rounded(path: str, machine: str = platform.machine()) -> bool:
    """Return whether XNNPACK may compute in f16: where a model lets it and the CPU has f16 units.

    On x86-64 it does not (tried on one with AVX512-FP16: a published model that allows it differs
    from f32 by 4e-6). TFLite does not say what it does elsewhere.
    """
    if machine in _NEVER_ROUNDING:
        return False
    with Path(path).open("rb") as file, mmap(file.fileno(), 0, access=ACCESS_READ) as content:
        return content.find(_REDUCED_PRECISION) >= 0


def declared(detail: Mapping[str, Any]) -> list[int]:
    """Return the sizes in the file, -1 for an open one."""
    sizes = detail["shape_signature"]
    return [int(size) for size in (sizes if len(sizes) else detail["shape"])]


def _open_inputs(interpreter: Any, shapes: Mapping[str, list[int]], path: str) -> bool:
    fixed = {name.removesuffix(":0") for name in shapes}
    inputs = named(_details(interpreter.get_input_details, path), "input")
    return any(-1 in declared(it) for name, it in inputs.items() if name not in fixed)


def _result_sizes(interpreter: Any, detail: Mapping[str, Any]) -> tuple[int | None, ...]:
    try:
        interpreter.tensor(detail["index"])()
    except ValueError:  # no memory yet: an inference decides how much
        sizes = _sizes(declared(detail))
        return sizes if None in sizes else (None,) * len(sizes)
    return _sizes(detail["shape"])


def _sizes(sizes: Sequence[int]) -> tuple[int | None, ...]:
    return tuple(None if size < 0 else int(size) for size in sizes)


def _dtypes(tensors: Mapping[str, Mapping[str, Any]], path: str) -> dict[str, str]:
    return {name: _dtype(name, detail, path) for name, detail in tensors.items()}


def _dtype(name: str, detail: Mapping[str, Any], path: str) -> str:
    theirs = np.dtype(detail["dtype"]).name
    if theirs not in _OURS:
        said = "string" if theirs.startswith(_STRINGS) else theirs
        place = f"model {Path(path).name!r}, {name!r}"
        raise ModelError(place, f"it has elements of type {said}", CONVERT_TENSOR)
    return _OURS[theirs]


def _details(read: Any, path: str) -> Sequence[Mapping[str, Any]]:
    try:
        found: Sequence[Mapping[str, Any]] = read()
    except ERRORS as error:
        place = f"model {Path(path).name!r}"
        fault = f"TFLite cannot describe it: {reason(error)}"
        raise ModelError(place, fault, FETCH_AGAIN) from error
    return found

"""OpenVINO: asked which nodes a device takes, then compiled for it alone and read back."""

from __future__ import annotations

import ctypes
from pathlib import Path
from typing import Any

import numpy as np
import openvino as ov

from edgert.coverage.adapter import Answer, Facts, Work
from edgert.coverage.adapters.bits import STRANGE, pack, unpack
from edgert.coverage.adapters.timing import median_ms
from edgert.coverage.placement import placement_of
from edgert.coverage.record import Node
from edgert.coverage.values import Value, Values, load

_NOT_NODES = ("Parameter", "Result", "Constant")
# What it says where an operator, in this version or for these types, has no implementation.
_UNSUPPORTED = (
    "No conversion rule found for",
    "Conversion is failed for",
    "Unsupported type",
    "unsupported",
    "not supported",
    "doesn't support",
    "not implemented",
    "No translator found for",
    # Of TFLite: a tensor that is kept from one inference to the next.
    "This tensor should be either input, constant or should be already produced",
)
# numpy's name by ml_dtypes of a type that numpy has not -> OpenVINO's.
_STRANGE = {
    "bfloat16": ov.Type.bf16,
    "float8_e4m3fn": ov.Type.f8e4m3,
    "float8_e5m2": ov.Type.f8e5m2,
    "float8_e8m0fnu": ov.Type.f8e8m0,
    "float4_e2m1fn": ov.Type.f4e2m1,
    "int4": ov.Type.i4,
    "uint4": ov.Type.u4,
    "uint2": ov.Type.u2,
}


class OpenVinoAdapter:
    """One device of the OpenVINO that is installed.

    Args:
        device: As OpenVINO names it: ``CPU``, ``GPU.0``, ``NPU``.
        options: Properties for compiling; f32 is asked for where nothing else is.
    """

    def __init__(self, device: str, options: dict[str, Any]) -> None:
        self._core = ov.Core()
        self._device = device
        self._config = {
            "INFERENCE_PRECISION_HINT": "f32",
            "NUM_STREAMS": "1",
            "INFERENCE_NUM_THREADS": "1",
            **{key: str(value) for key, value in options.items()},
        }
        if device.partition(".")[0] != "CPU":
            self._config.pop("INFERENCE_NUM_THREADS", None)

    def facts(self) -> Facts:
        """Say whether the device is here; ``available_devices`` tells the truth."""
        here = self._core.available_devices
        versions = {"openvino": ov.__version__}
        formats = ("onnx", "openvino-ir", "tflite", "tensorflow", "saved-model", "paddle")
        if self._device in here:
            return Facts(evidence="hardware", versions=versions, formats=formats, computes=True)
        return Facts(
            evidence="unavailable",
            versions=versions,
            formats=formats,
            computes=False,
            reason=f"OpenVINO sees no device '{self._device}' here",
            mend=f"It sees: {', '.join(here) or 'none'}; 'edgert devices' says what is missing",
        )

    def ask(self, work: Work) -> tuple[Answer, Values]:
        """Read, query, compile and run a model."""
        try:
            model = self._core.read_model(work.path)
            compiled = self._core.compile_model(model, self._device, self._config)
        except RuntimeError as error:
            said = " ".join(str(error).split())
            if any(sign in said for sign in _UNSUPPORTED):
                return Answer(placement="rejected", unsupported=True, reason=_short(said)), {}
            raise
        nodes = self._nodes(model)
        actual = [str(name) for name in compiled.get_property("EXECUTION_DEVICES")]
        if actual != [self._device]:
            said = f"it compiled for {', '.join(actual)} instead"
            return Answer(placement="cpu", nodes=nodes, reason=said), {}
        placement = placement_of(nodes) if nodes else "device"
        if not work.inputs:
            return Answer(placement=placement, nodes=nodes), {}
        outputs, latency_ms = _run(compiled, load(Path(work.inputs)), work.runs)
        return Answer(placement=placement, nodes=nodes, latency_ms=latency_ms), outputs

    def _nodes(self, model: Any) -> list[Node]:
        """Return the nodes of a model that was compiled for this device alone: all are there."""
        return [
            Node(name=node.get_friendly_name(), operator=node.get_type_name(), placement="device")
            for node in model.get_ordered_ops()
            if node.get_type_name() not in _NOT_NODES
        ]


def _run(compiled: Any, inputs: Values, runs: int) -> tuple[dict[str, Value], float | None]:
    request = compiled.create_infer_request()
    given = _tensors(compiled, inputs)
    request.infer(given)
    outputs: dict[str, Value] = {
        name: _array_of(request.get_output_tensor(number))
        for number, output in enumerate(compiled.outputs)
        for each in output.names  # of outputs that are the same tensor, all
        for name in (each, _plain(each))
    }
    return outputs, median_ms(lambda: request.infer(given), runs)


def _tensors(compiled: Any, inputs: Values) -> dict[int, Any]:
    known = {
        name: number
        for number, port in enumerate(compiled.inputs)
        for each in port.names
        for name in (each, _plain(each))
    }
    given = {}
    for name, value in inputs.items():
        if name in known:
            if not isinstance(value, np.ndarray):
                msg = f"input '{name}' is not a tensor, and OpenVINO takes nothing else"
                raise TypeError(msg)
            given[known[name]] = _tensor_of(value)
    return given


def _plain(name: str) -> str:
    """Return a name without TensorFlow's number of the output, as its other runtimes call it."""
    return name.removesuffix(":0")


def _tensor_of(array: Any) -> Any:
    if array.dtype.kind in "OUS":
        return ov.Tensor(array.astype(str))
    element = _STRANGE.get(array.dtype.name)
    if element is None:
        contiguous = np.require(array, requirements="C")  # a scalar stays one
        return ov.Tensor(contiguous)
    made = ov.Tensor(element, ov.Shape(array.shape))
    data = pack(array, STRANGE[array.dtype.name][1])
    ctypes.memmove(_address(made), data, len(data))
    return made


def _array_of(tensor: Any) -> Value:
    for name, element in _STRANGE.items():
        if tensor.element_type == element:
            data = ctypes.string_at(_address(tensor), tensor.byte_size)
            return unpack(data, name, tuple(tensor.shape))
    copied: Value = np.array(
        tensor.str_data if tensor.element_type == ov.Type.string else tensor.data
    )
    return copied


def _address(tensor: Any) -> int:
    address: int = tensor.data.ctypes.data
    return address


def _short(said: str) -> str:
    """Keep what it says last, without the places in its own source."""
    for before in ("Summary: -- ", "FrontEnd API failed with "):
        if before in said:
            return said.rpartition(before)[2][:300]
    return said[:300]

"""OpenVINO: CPU, GPU and NPU; reads ONNX, IR, TensorFlow, TFLite and Paddle models."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from edgert.backends.base import CompileRequest, DeviceFacts, DeviceReport, Signature
from edgert.backends.binding import refuse_open_inputs
from edgert.backends.byte_input import with_bytes
from edgert.backends.mends import CONVERT_TENSOR, FETCH_AGAIN, LOOK_AT_INPUTS
from edgert.backends.opcount import OperatorCount, count_operators
from edgert.backends.openvino_bytes import take_bytes
from edgert.backends.openvino_devices import (
    HETERO,
    Target,
    config_of,
    count_placed,
    settable,
    target_of,
)
from edgert.backends.openvino_kept import read_or_keep
from edgert.backends.openvino_runtime import READ_ERRORS, ov, reason, unread
from edgert.backends.openvino_session import OpenVinoSession
from edgert.backends.placement import landed
from edgert.errors import DeviceError, ModelError
from edgert.tensor import DTYPES, TensorSpec

log = logging.getLogger(__name__)

# Read by the frontend that is meant: asking all of them hides why the right one refused.
_FRONTENDS = {".onnx": "onnx", ".pb": "tf", ".tflite": "tflite", ".pdmodel": "paddle"}
_DRIVERS = {"NPU": "NPU_DRIVER_VERSION", "GPU": "GPU_DRIVER_VERSION"}
_SLOW_TO_READ = "tf"


class OpenVinoBackend:
    """The OpenVINO runtime."""

    name = "openvino"

    def __init__(self) -> None:
        self._core = ov.Core()
        # Kept as long as models of its frontends may live.
        self._frontends = ov.frontend.FrontEndManager()

    def version(self) -> str:
        """Name and version of the runtime."""
        return f"openvino {ov.__version__.partition('-')[0]}"

    def devices(self) -> tuple[str, ...]:
        """Devices that are really here (a plugin that loads proves nothing)."""
        return tuple(self._core.available_devices)

    def describe(self, device: str) -> DeviceFacts:
        """What the hardware is called, and its driver's version."""
        driver = _DRIVERS.get(device.partition(".")[0])
        return DeviceFacts(
            self._property(device, "FULL_DEVICE_NAME"),
            self._property(device, driver) if driver else "",
        )

    def option_names(self, device: str) -> list[str]:
        """Name the properties that a device takes; its library alone knows them."""
        target = target_of(device, self.devices(), f"{self.name}:{device}")
        return settable(self._core, target)

    def signature(self, path: str, shapes: Mapping[str, list[int]]) -> Signature:
        """Read a model's inputs and outputs after fixing ``shapes``."""
        return _signature_of(self._read(path, shapes), path)

    def inspect(
        self, path: str, shapes: Mapping[str, list[int]]
    ) -> tuple[Signature, OperatorCount]:
        """Read a model's signature and count what it is made of."""
        model = self._read(path, shapes)
        return _signature_of(model, path), count_operators(model)

    def compile(self, request: CompileRequest) -> OpenVinoSession:
        """Compile a model for one device and prove where it landed."""
        place = f"{self.name}:{request.device}"
        target = target_of(request.device, self.devices(), place)
        model = self._read_for(request)
        signature = _signature_of(model, request.path)
        name = Path(request.path).name
        refuse_open_inputs(name, signature.inputs)
        seen = with_bytes(signature, request.bytes, name)
        if request.bytes:
            at = {name: n for n, name in enumerate(signature.inputs)}
            model = take_bytes(model, {at[name]: how for name, how in request.bytes.items()})
        config = config_of(self._core, target, request, place)
        compiled = self._compile(model, target, config, request)
        report = self._report(compiled, model, target, request)
        return OpenVinoSession(compiled, seen, report, request.requests)

    def _read_for(self, request: CompileRequest) -> Any:
        def read() -> Any:
            return self._read(request.path, request.shapes)

        if not request.cache_dir or _frontend_of(request.path) != _SLOW_TO_READ:
            return read()
        return read_or_keep(self._core, request.path, request.cache_dir, request.shapes, read)

    def _property(self, device: str, name: str) -> str:
        try:
            return str(self._core.get_property(device, name)).strip()
        except RuntimeError:  # a device need not have it
            return ""

    def _read(self, path: str, shapes: Mapping[str, list[int]]) -> Any:
        place = f"model {Path(path).name!r}"
        if not Path(path).exists():
            raise ModelError(place, f"there is no file {path}")
        frontend = _frontend_of(path)
        try:
            if frontend is None:
                model = self._core.read_model(path)
            else:
                reader = self._frontends.load_by_framework(frontend)
                model = reader.convert(reader.load(path))
        except READ_ERRORS as error:
            raise unread(place, error) from error
        if not model.outputs:
            raise ModelError(place, "OpenVINO finds no model in it", FETCH_AGAIN)
        _fix_shapes(model, shapes, place)
        return model

    def _compile(
        self, model: Any, target: Target, config: dict[str, Any], request: CompileRequest
    ) -> Any:
        place = f"{self.name}:{request.device}"
        if request.cache_dir:
            cached = {**config, "CACHE_DIR": self._cache_of(target, request)}
            try:
                return self._core.compile_model(model, target.name, cached)
            except (RuntimeError, TypeError) as error:
                log.warning("%s: compiled without the cache: %s", place, reason(error))
        try:
            return self._core.compile_model(model, target.name, config)
        except (RuntimeError, TypeError) as error:
            if request.options and not self._takes(target, config):
                raise DeviceError(f"{place}, options", reason(error)) from error
            raise DeviceError(place, f"it refuses the model: {reason(error)}") from error

    def _cache_of(self, target: Target, request: CompileRequest) -> str:
        """Name the folder for what is compiled here in this way: version, device, driver, options.

        OpenVINO tells models apart by itself; what else goes into its key is up to each plugin.
        """
        facts = [self.describe(device) for device in target.devices]
        how = [target.name, request.precision, sorted(request.options.items())]
        said = msgspec.json.encode([ov.get_version(), facts, how])
        return str(Path(request.cache_dir) / f"compiled-{hashlib.sha256(said).hexdigest()[:32]}")

    def _takes(self, target: Target, config: dict[str, Any]) -> bool:
        """Whether the device compiles the smallest model with the same properties."""
        value = ov.opset13.parameter([1], np.float32)
        try:
            self._core.compile_model(ov.Model([value], [value]), target.name, config)
        except (RuntimeError, TypeError):
            return False
        return True

    def _report(
        self, compiled: Any, model: Any, target: Target, request: CompileRequest
    ) -> DeviceReport:
        place = f"{self.name}:{request.device}"
        there = [name.strip("()") for name in compiled.get_property("EXECUTION_DEVICES")]
        if not all(map(target.prefix_of, there)):
            raise DeviceError(place, f"OpenVINO compiled it for {', '.join(there)} instead")
        placed = ""
        if target.kind == HETERO:
            found = count_placed(self._core, model, target)
            landed(found, target.devices[0], place, whole=request.whole)
            placed = f"{found} on {target.devices[0]}"
        actual = f"{self.name}:{','.join(there)}"
        return DeviceReport(place, actual, _precision_of(compiled), self.version(), placed=placed)


def _frontend_of(path: str) -> str | None:
    """Name the frontend that reads a model; a folder is a SavedModel."""
    return "tf" if Path(path).is_dir() else _FRONTENDS.get(Path(path).suffix.lower())


def _precision_of(compiled: Any) -> str:
    try:
        hint = compiled.get_property("INFERENCE_PRECISION_HINT")
    except RuntimeError:  # not every device has the property
        return "unknown"
    name = hint.get_type_name()
    return "unknown" if name == "dynamic" else str(name)


def _name_of(port: Any, otherwise: str) -> str:
    # A tensor has the name of every node it passed through unchanged. An output that the model
    # itself names (TensorFlow: ``detection_boxes:0``) is called so, any other by the smallest
    # name, which is always the same. A compiled model has more names for the same tensor: ask the
    # model as it was read, sessions count ports.
    names = sorted(port.names)
    own = port.node.friendly_name
    chosen = own if own in names else next(iter(names), otherwise)
    return chosen.removesuffix(":0")


def _signature_of(model: Any, path: str) -> Signature:
    return Signature(
        {
            _name_of(port, f"input{n}"): _spec_of(port, f"input {n}", path)
            for n, port in enumerate(model.inputs)
        },
        {
            _name_of(port, f"output{n}"): _spec_of(port, f"output {n}", path)
            for n, port in enumerate(model.outputs)
        },
    )


def _spec_of(port: Any, place: str, path: str) -> TensorSpec:
    dtype = port.element_type.get_type_name().replace("boolean", "bool")
    shape = port.partial_shape
    place = f"model {Path(path).name!r}, {place}"
    if dtype not in DTYPES:
        raise ModelError(place, f"it has elements of type {dtype}", CONVERT_TENSOR)
    if shape.rank.is_dynamic:
        raise ModelError(place, "it leaves the number of its dimensions open")
    sizes = [size.get_length() if size.is_static else None for size in shape]
    return TensorSpec(dtype, tuple(sizes))


def _fix_shapes(model: Any, shapes: Mapping[str, list[int]], place: str) -> None:
    ports = {_name_of(port, f"input{n}"): port for n, port in enumerate(model.inputs)}
    wanted = {}
    for name, shape in shapes.items():
        port = ports.get(name.removesuffix(":0"))
        if port is None:
            raise ModelError(
                f"{place}, shape", f"it has no input {name!r}", f"Its inputs: {', '.join(ports)}"
            )
        if port.partial_shape != ov.PartialShape(list(shape)):
            wanted[port] = ov.PartialShape(list(shape))
    if not wanted:
        return
    try:
        model.reshape(wanted)
    except RuntimeError as error:
        fault = f"the shape does not fit the model: {reason(error)}"
        raise ModelError(f"{place}, shape", fault, LOOK_AT_INPUTS) from error

"""TFLite: the CPU, with XNNPACK, and any delegate by name or by the path of its library."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from edgert.backends import tflite_delegates as delegates
from edgert.backends.base import CompileRequest, DeviceReport, Signature
from edgert.backends.binding import refuse_open_inputs
from edgert.backends.byte_input import with_bytes
from edgert.backends.placement import landed
from edgert.backends.tflite_delegates import Delegate
from edgert.backends.tflite_model import (
    allocate,
    fix_shapes,
    may_be_rounded,
    open_model,
    signature_of,
)
from edgert.backends.tflite_options import TfliteOptions, read
from edgert.backends.tflite_runtime import (
    ERRORS,
    reason,
    require_interpreter,
    version_of_package,
)
from edgert.backends.tflite_session import TfliteSession
from edgert.errors import DeviceError

_CPU = "CPU"


class TfliteBackend:
    """TensorFlow Lite: ai-edge-litert, or tflite-runtime."""

    name = "tflite"

    def __init__(self) -> None:
        require_interpreter()

    def version(self) -> str:
        """Name and version of the runtime."""
        return f"{self.name} {version_of_package()}"

    def devices(self) -> tuple[str, ...]:
        """The CPU, and the delegates whose library finds its device."""
        return (_CPU, *delegates.here())

    def signature(self, path: str, shapes: Mapping[str, list[int]]) -> Signature:
        """Read a model's inputs and outputs after fixing ``shapes``."""
        interpreter = open_model(path, 1, xnnpack=False)
        fix_shapes(interpreter, shapes, path)
        allocated = allocate(interpreter, shapes, path)
        return signature_of(interpreter, shapes, path, allocated=allocated)

    def compile(self, request: CompileRequest) -> TfliteSession:
        """Make an interpreter for each request and prove what a delegate took."""
        place = f"{self.name}:{request.device}"
        delegate = self._delegate(request.device, place)
        options = _options(request, delegate, place)
        lanes = request.lanes if delegate is None else request.requests
        pool = [_interpreter(request, delegate, options, place) for _ in range(lanes)]
        own = signature_of(pool[0], request.shapes, request.path, allocated=True)
        seen = with_bytes(own, request.bytes, Path(request.path).name)
        precision = "unknown" if delegate else _precision_on_cpu(own, request.path)
        report = self._report(pool[0], request, delegate, precision)
        return TfliteSession(pool, own, seen, request.bytes, report, request.requests)

    def _delegate(self, device: str, place: str) -> Delegate | None:
        if device.upper() == _CPU:
            return None
        found = delegates.find(device)
        if found is None:
            known = ", ".join((_CPU, *delegates.DELEGATES))
            raise DeviceError(
                place,
                f"there is no device {device!r} here",
                f"TFLite has: {known}, and {delegates.EXTERNAL} with the path of a library",
            )
        return found

    def _report(
        self, interpreter: Any, request: CompileRequest, delegate: Delegate | None, precision: str
    ) -> DeviceReport:
        device = request.device
        place = f"{self.name}:{device}"
        if delegate is None:
            actual = f"{self.name}:{_CPU}"
            requested = actual if device.upper() == _CPU else place
            return DeviceReport(requested, actual, precision, self.version())
        found = delegates.placement(interpreter)
        actual = f"{self.name}:{landed(found, device, place, whole=request.whole)}"
        placed = "unknown" if found is None else str(found)
        return DeviceReport(place, actual, precision, self.version(), placed=placed)


def _options(request: CompileRequest, delegate: Delegate | None, place: str) -> TfliteOptions:
    options = read(request.options, place)
    if delegate is not None and options.xnnpack:
        raise DeviceError(
            f"{place}, options, xnnpack",
            "beside a delegate XNNPACK is off: what the delegate took could not be told",
            "Leave it out",
        )
    return options


def _interpreter(
    request: CompileRequest, delegate: Delegate | None, options: TfliteOptions, place: str
) -> Any:
    threads = request.threads_per_lane
    loaded = [] if delegate is None else [delegates.load(delegate, options.delegate, place)]
    xnnpack = delegate is None and options.xnnpack is not False
    try:
        interpreter = open_model(request.path, threads, xnnpack=xnnpack, delegates=loaded)
        fix_shapes(interpreter, request.shapes, request.path)
        own = signature_of(interpreter, request.shapes, request.path, allocated=False)
        refuse_open_inputs(Path(request.path).name, own.inputs)
        interpreter.allocate_tensors()
    except ERRORS as error:
        raise DeviceError(place, f"it refuses the model: {reason(error)}") from error
    return interpreter


def _precision_on_cpu(own: Signature, path: str) -> str:
    # TFLite computes in the graph's own types; what is inside of a quantised one it does not say.
    found = {spec.dtype for spec in (*own.inputs.values(), *own.outputs.values())}
    return "f32" if found == {"f32"} and not may_be_rounded(path) else "unknown"

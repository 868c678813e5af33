"""ONNX Runtime: any execution provider it was built with, and only the one that was asked for."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from edgert.backends.base import CompileRequest, DeviceReport, Signature
from edgert.backends.binding import refuse_open_inputs
from edgert.backends.onnxruntime_graph import read_graph
from edgert.backends.onnxruntime_runtime import native, ort
from edgert.backends.onnxruntime_session import OnnxRuntimeSession
from edgert.backends.options import read_options
from edgert.errors import DeviceError, ModelError
from edgert.tensor import DTYPES, TensorSpec

_CPU = "CPUExecutionProvider"
_SUFFIX = "ExecutionProvider"
# Calls a service in the cloud: compiled into every build, and no device of this machine.
_NO_DEVICES = ("AzureExecutionProvider",)
_QUIET = 4  # every error is raised too: its log would say it twice
_OTHER_NAMES = {"float32": "float", "float64": "double"}
_ELEMENTS = {f"tensor({_OTHER_NAMES.get(name, name)})": ours for ours, name in DTYPES.items()}
_OPTIMISATION = {
    "all": ort.GraphOptimizationLevel.ORT_ENABLE_ALL,
    "basic": ort.GraphOptimizationLevel.ORT_ENABLE_BASIC,
    "off": ort.GraphOptimizationLevel.ORT_DISABLE_ALL,
}
_MODEL_ERRORS = (
    native.InvalidArgument,
    native.InvalidGraph,
    native.InvalidProtobuf,
    native.NoModel,
    native.NoSuchFile,
)
_DEVICE_ERRORS = (
    native.EPFail,
    native.EngineError,
    native.Fail,
    native.NotImplemented,
    native.RuntimeException,
    RuntimeError,
    ValueError,
)


class OnnxRuntimeOptions(msgspec.Struct, frozen=True):
    """Options of this backend.

    Attributes:
        optimisation: Of the graph: ``all``, ``basic`` or ``off``.
        spinning: Whether idle threads burn CPU time to wake up sooner.
        provider: Options of the execution provider's own, as strings.
    """

    optimisation: str = "all"
    spinning: bool = False
    provider: dict[str, str] = {}


class OnnxRuntimeBackend:
    """The ONNX Runtime."""

    name = "onnxruntime"

    def version(self) -> str:
        """Name and version of the runtime."""
        return f"onnxruntime {ort.__version__}"

    def devices(self) -> tuple[str, ...]:
        """Execution providers of this build by their short names, CPU last."""
        here = [name for name in ort.get_available_providers() if name not in _NO_DEVICES]
        return tuple(name.removesuffix(_SUFFIX) for name in here)

    def signature(self, path: str, shapes: Mapping[str, list[int]]) -> Signature:
        """Read a model's inputs and outputs after fixing ``shapes``."""
        options = _session_options(OnnxRuntimeOptions(optimisation="basic"), 1)
        graph = read_graph(path, shapes, {})
        session = _open(path, graph.source, options, _CPU, f"model {Path(path).name!r}", {})
        return _signature_of(session, path)

    def compile(self, request: CompileRequest) -> OnnxRuntimeSession:
        """Compile a model for one execution provider and prove that it runs there alone."""
        place = f"{self.name}:{request.device}"
        provider = self._provider(request.device, place)
        options = read_options(OnnxRuntimeOptions, request.options, place)
        if options.optimisation not in _OPTIMISATION:
            raise DeviceError(
                f"{place}, options, optimisation",
                f"there is no {options.optimisation!r}",
                f"One of: {', '.join(_OPTIMISATION)}",
            )
        config = _session_options(options, request.threads_per_lane)
        if provider != _CPU:
            config.add_session_config_entry("session.disable_cpu_ep_fallback", "1")
        graph = read_graph(request.path, request.shapes, request.bytes)
        session = _open(request.path, graph.source, config, provider, place, options.provider)
        if session.get_providers()[0] != provider:
            landed = ", ".join(session.get_providers())
            raise DeviceError(place, f"ONNX Runtime would run it on {landed} instead")
        signature = _signature_of(session, request.path)
        refuse_open_inputs(Path(request.path).name, signature.inputs)
        actual = f"{self.name}:{provider.removesuffix(_SUFFIX)}"
        own = msgspec.structs.replace(signature, inputs={**signature.inputs, **graph.own})
        report = DeviceReport(place, actual, _precision_of(provider, own), self.version())
        lanes = request.lanes if provider == _CPU else request.requests
        return OnnxRuntimeSession(session, signature, report, request.requests, lanes)

    def _provider(self, device: str, place: str) -> str:
        wanted = device.lower().removesuffix(_SUFFIX.lower())
        for name in self.devices():
            if name.lower() == wanted:
                return f"{name}{_SUFFIX}"
        here = ", ".join(self.devices())
        raise DeviceError(
            place, f"there is no execution provider {device!r} here", f"This build has: {here}"
        )


def _session_options(options: OnnxRuntimeOptions, threads: int) -> Any:
    config = ort.SessionOptions()
    config.log_severity_level = _QUIET
    config.intra_op_num_threads = threads
    config.inter_op_num_threads = 1
    config.graph_optimization_level = _OPTIMISATION[options.optimisation]
    config.add_session_config_entry("session.intra_op.allow_spinning", str(int(options.spinning)))
    return config


def _open(
    path: str,
    source: str | bytes,
    config: Any,
    provider: str,
    place: str,
    provider_options: Mapping[str, str],
) -> Any:
    model = f"model {Path(path).name!r}"
    if source != path:
        # Weights in files of their own are looked for beside the model's file.
        config.add_session_config_entry(
            "session.model_external_initializers_file_folder_path", str(Path(path).parent)
        )
    try:
        return ort.InferenceSession(
            source,
            config,
            providers=[(provider, dict(provider_options))],
            enable_fallback=0,
        )
    except _MODEL_ERRORS as error:
        fault = f"ONNX Runtime cannot read it: {reason(error)}"
        raise ModelError(model, fault, "Fetch or convert it again") from error
    except _DEVICE_ERRORS as error:
        raise DeviceError(place, f"it refuses the model: {reason(error)}") from error


def _signature_of(session: Any, path: str) -> Signature:
    return Signature(
        {value.name: _spec_of(value, path) for value in session.get_inputs()},
        {value.name: _spec_of(value, path) for value in session.get_outputs()},
    )


def _spec_of(value: Any, path: str) -> TensorSpec:
    dtype = _ELEMENTS.get(value.type)
    if dtype is None:
        place = f"model {Path(path).name!r}, {value.name!r}"
        raise ModelError(place, f"it has elements of type {value.type}")
    sizes = (size if isinstance(size, int) and size >= 0 else None for size in value.shape)
    return TensorSpec(dtype, tuple(sizes))


def _precision_of(provider: str, signature: Signature) -> str:
    # ONNX Runtime's CPU provider computes in the graph's own types; others do not say.
    found = {spec.dtype for spec in (*signature.inputs.values(), *signature.outputs.values())}
    return "f32" if provider == _CPU and found == {"f32"} else "unknown"


def reason(error: Exception) -> str:
    """Return what an error of ONNX Runtime says, without its code."""
    said = str(error).strip().rpartition("] : ")[2] or type(error).__name__
    return " ".join(said.split())[:400].rstrip(".")

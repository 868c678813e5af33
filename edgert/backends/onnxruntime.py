"""ONNX Runtime: any execution provider it was built with, and only the one that was asked for."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from edgert.backends import onnxruntime_providers as providers
from edgert.backends.base import CompileRequest, DeviceReport, Session, Signature
from edgert.backends.binding import refuse_open_inputs
from edgert.backends.byte_input import with_bytes
from edgert.backends.byte_session import ByteFedSession
from edgert.backends.mends import CONVERT_TENSOR, FETCH_AGAIN
from edgert.backends.onnxruntime_graph import read_graph
from edgert.backends.onnxruntime_kept import Open, Opened, open_or_keep
from edgert.backends.onnxruntime_options import OnnxRuntimeOptions, read
from edgert.backends.onnxruntime_providers import CPU, Provider
from edgert.backends.onnxruntime_runtime import RAISED, native, ort, reason
from edgert.backends.onnxruntime_session import OnnxRuntimeSession
from edgert.backends.options import as_text
from edgert.backends.placement import landed
from edgert.errors import DeviceError, ModelError
from edgert.tensor import DTYPES, TensorSpec

_QUIET = 4  # every error is raised too: its log would say it twice
_OTHER_NAMES = {"float32": "float", "float64": "double"}
_ELEMENTS = {f"tensor({_OTHER_NAMES.get(name, name)})": ours for ours, name in DTYPES.items()}
_OPTIMISATION = {
    "all": ort.GraphOptimizationLevel.ORT_ENABLE_ALL,
    "extended": ort.GraphOptimizationLevel.ORT_ENABLE_EXTENDED,
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


class OnnxRuntimeBackend:
    """The ONNX Runtime."""

    name = "onnxruntime"

    def version(self) -> str:
        """Name and version of the runtime."""
        return f"onnxruntime {ort.__version__}"

    def devices(self) -> tuple[str, ...]:
        """Execution providers by their short names: plug-ins first, CPU last."""
        return providers.names()

    def signature(self, path: str, shapes: Mapping[str, list[int]]) -> Signature:
        """Read a model's inputs and outputs after fixing ``shapes``."""
        config = _session_options(OnnxRuntimeOptions(optimisation="basic"), 1)
        graph = read_graph(path, shapes, {})
        place = f"model {Path(path).name!r}"
        return _signature_of(_open(path, graph.source, config, Provider(CPU), place, {}), path)

    def compile(self, request: CompileRequest) -> Session:
        """Compile a model for one execution provider and prove what it took."""
        place = f"{self.name}:{request.device}"
        options = read(request.options, place)
        provider = providers.find(
            request.device, place, options.provider_library, options.provider_name
        )
        is_cpu = provider.name == CPU
        # What others make of bytes is not known: QNN takes the cast, and gives zeros.
        graph = read_graph(request.path, request.shapes, request.bytes if is_cpu else {})
        given = provider.options(as_text(options.provider), exact=request.precision == "f32")

        def open_session(instead: Path | None, entries: Mapping[str, str]) -> Any:
            config = _session_options(options, request.threads_per_lane)
            if not is_cpu:
                _let_it_tell(config, whole=request.whole)
            for key, value in entries.items():
                config.add_session_config_entry(key, value)
            source = str(instead) if instead else graph.source
            return _open(request.path, source, config, provider, place, given)

        how = [msgspec.to_builtins(options), sorted(given.items())]
        opened = _open_or_keep(request, provider, how, open_session)
        session = opened.session
        signature = _signature_of(session, request.path)
        name = Path(request.path).name
        refuse_open_inputs(name, signature.inputs)
        own = msgspec.structs.replace(signature, inputs={**signature.inputs, **graph.own})
        report = self._report(opened, provider, request, own)
        lanes = request.lanes if is_cpu else request.requests
        seen = signature if is_cpu else with_bytes(signature, request.bytes, name)
        made = OnnxRuntimeSession(session, signature, report, request.requests, lanes)
        return made if seen is signature else ByteFedSession(made, seen, request.bytes)

    def _report(
        self, opened: Opened, provider: Provider, request: CompileRequest, own: Signature
    ) -> DeviceReport:
        place = f"{self.name}:{request.device}"
        there = opened.session.get_providers()
        if there[0] != provider.name:
            fault = f"ONNX Runtime would run it on {', '.join(there)} instead"
            raise DeviceError(place, fault)
        if provider.name == CPU:
            actual = f"{self.name}:{provider.short}"
            return DeviceReport(place, actual, _precision_on_cpu(own), self.version())
        found = opened.placed
        # Where it does not tell, ONNX Runtime itself has refused a model that is split.
        name = f"{provider.short} (emulated)" if provider.is_emulated else provider.short
        took = name if found is None else landed(found, name, place, whole=request.whole)
        return DeviceReport(
            place,
            f"{self.name}:{took}",
            "unknown",
            ", ".join(filter(None, [self.version(), provider.version])),
            emulated=provider.is_emulated,
            placed="" if found is None else str(found),
        )


def _open_or_keep(request: CompileRequest, provider: Provider, how: Any, opener: Open) -> Opened:
    """Open a session; what a plug-in compiles is kept.

    Args:
        request: What is to be compiled.
        provider: For whom.
        how: With which options.
        opener: Opens the session.
    """
    if provider.plugin is not None and request.cache_dir:
        shapes = sorted(request.shapes.items())
        # Who replaces the file after it was planned gets its own.
        key = [ort.__version__, provider.facts, how, shapes, request.whole, _stamp(request.path)]
        return open_or_keep(request.cache_dir, key, opener, provider.placement)
    session = opener(None, {})
    return Opened(session, None if provider.name == CPU else provider.placement(session))


def _stamp(path: str) -> tuple[int, int]:
    status = Path(path).stat()
    return status.st_size, status.st_mtime_ns


def _let_it_tell(config: Any, *, whole: bool) -> None:
    """Let ONNX Runtime say which provider took which node, and refuse a split where it must."""
    config.add_session_config_entry("session.record_ep_graph_assignment_info", "1")
    if whole or not providers.TELLS_PLACEMENT:
        config.add_session_config_entry("session.disable_cpu_ep_fallback", "1")


def _session_options(options: OnnxRuntimeOptions, threads: int) -> Any:
    config = ort.SessionOptions()
    config.log_severity_level = _QUIET
    config.intra_op_num_threads = threads
    config.inter_op_num_threads = 1
    config.graph_optimization_level = _OPTIMISATION[options.optimisation]
    config.enable_cpu_mem_arena = options.arena
    config.add_session_config_entry("session.disable_prepacking", str(int(not options.prepacking)))
    config.add_session_config_entry("session.intra_op.allow_spinning", str(int(options.spinning)))
    return config


def _open(  # noqa: PLR0913  what a session of ONNX Runtime's own is made of
    path: str,
    source: str | bytes,
    config: Any,
    provider: Provider,
    place: str,
    options: Mapping[str, str],
) -> Any:
    model = f"model {Path(path).name!r}"
    if source != path:
        # Weights in files of their own are looked for beside the model's file.
        config.add_session_config_entry(
            "session.model_external_initializers_file_folder_path", str(Path(path).parent)
        )
    try:
        return provider.session(source, config, options)
    except _MODEL_ERRORS as error:
        fault = f"ONNX Runtime cannot read it: {reason(error)}"
        raise ModelError(model, fault, FETCH_AGAIN) from error
    except RAISED as error:
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
        raise ModelError(place, f"it has elements of type {value.type}", CONVERT_TENSOR)
    sizes = (size if isinstance(size, int) and size >= 0 else None for size in value.shape)
    return TensorSpec(dtype, tuple(sizes))


def _precision_on_cpu(own: Signature) -> str:
    # The CPU computes in the graph's own types; other providers do not say.
    found = {spec.dtype for spec in (*own.inputs.values(), *own.outputs.values())}
    return "f32" if found == {"f32"} else "unknown"

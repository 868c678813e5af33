"""Execution providers: those built into ONNX Runtime, and plug-ins in libraries of their own.

    onnxruntime:CUDA           built in, or refused with the package that carries it
    onnxruntime:QNN            a plug-in whose package is installed, or named by its library
    onnxruntime:OpenVINO.NPU   a plug-in that drives several kinds of hardware: one of them

A plug-in is registered once a process. It is never left to choose its hardware, and what it took
of a model is counted node by node: ONNX Runtime lists a provider that took none as if it ran there.
"""

from __future__ import annotations

import importlib.util
import platform
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

import msgspec

from edgert.backends.onnxruntime_runtime import RAISED, ort, reason
from edgert.backends.placement import Placement
from edgert.errors import DeviceError

CPU = "CPUExecutionProvider"
_SUFFIX = "ExecutionProvider"
# Calls a service in the cloud: compiled into every build, and no device of this machine.
_NO_DEVICES = ("AzureExecutionProvider",)
_CHOOSES = ".AUTO"
# Qualcomm ships its HTP for PCs as an emulator; on its own chips it is the hardware.
_EMULATED = {"QNN": ("x86_64", "AMD64")}


class Carrier(msgspec.Struct, frozen=True):
    """Where a provider comes from that is not built in.

    Attributes:
        mend: What brings it.
        module: Module of the plug-in's package, which tells the path of its library.
        defaults: Options without which it does not start, unless others of the tuple are given.
        exact: Options that make it compute in f32.
    """

    mend: str
    module: str = ""
    defaults: dict[tuple[str, ...], str] = {}
    exact: dict[tuple[str, ...], str] = {}


_F32 = '{"CPU": {"INFERENCE_PRECISION_HINT": "f32"}, "GPU": {"INFERENCE_PRECISION_HINT": "f32"}}'
CARRIERS = {
    "QNN": Carrier(
        "Run: pip install onnxruntime-qnn",
        "onnxruntime_qnn",
        defaults={("backend_type", "backend_path"): "htp"},
    ),
    "OpenVINO": Carrier(
        "Run: pip install onnxruntime-ep-openvino (or use edgert's own: openvino:CPU)",
        "onnxruntime_ep_openvino",
        exact={("load_config",): _F32},
    ),
    "WebGPU": Carrier("Run: pip install onnxruntime-ep-webgpu", "onnxruntime_ep_webgpu"),
    "NvTensorRTRTX": Carrier(
        "Run: pip install onnxruntime-ep-nv-tensorrt-rtx", "onnxruntime_ep_nv_tensorrt_rtx"
    ),
    "CUDA": Carrier("Run: pip install onnxruntime-gpu, in place of onnxruntime"),
    "TensorRT": Carrier("Run: pip install onnxruntime-gpu, in place of onnxruntime"),
    "MIGraphX": Carrier("It comes with AMD's builds of ONNX Runtime for ROCm"),
    "VitisAI": Carrier("It comes with AMD's Ryzen AI and Vitis AI software"),
    "CANN": Carrier("Run: pip install onnxruntime-cann, in place of onnxruntime"),
    "CoreML": Carrier("It is in ONNX Runtime's builds for macOS"),
    "ACL": Carrier("ONNX Runtime has to be built for it: build.sh --use_acl"),
    "XNNPACK": Carrier("ONNX Runtime has to be built for it: build.sh --use_xnnpack"),
}


class Provider(msgspec.Struct, frozen=True):
    """An execution provider that is here.

    Attributes:
        name: In ONNX Runtime's words: ``QNNExecutionProvider``.
        plugin: Its device, where it is a plug-in; None where it is built in.
        carrier: What is known of where it comes from.
    """

    name: str
    plugin: Any = None
    carrier: Carrier = Carrier("")

    @property
    def short(self) -> str:
        """Its name in a pipeline file, with the hardware of a plug-in: ``OpenVINO.NPU``."""
        short = self.name.removesuffix(_SUFFIX)
        return short if self.plugin is None else f"{short}.{_hardware(self.plugin)}"

    @property
    def version(self) -> str:
        """Name and version of the plug-in, where it tells; empty for those that are built in."""
        told = "" if self.plugin is None else dict(self.plugin.ep_metadata).get("version", "")
        return told and f"{self.name.removesuffix(_SUFFIX)} {told}"

    @property
    def facts(self) -> list[Any]:
        """What decides to what a plug-in compiles a model: itself, its library, its hardware."""
        if self.plugin is None:
            return [self.name]
        told, hardware = dict(self.plugin.ep_metadata), self.plugin.device
        library = Path(told.get("library_path", ""))
        status = library.stat() if library.is_file() else None
        stamp = [status.st_size, status.st_mtime_ns] if status else []
        parts = [hardware.type.name, hardware.vendor_id, hardware.device_id]
        return [
            self.name,
            sorted(told.items()),
            stamp,
            parts,
            sorted(dict(hardware.metadata).items()),
        ]

    @property
    def is_emulated(self) -> bool:
        """Whether software stands in for its hardware here."""
        return platform.machine() in _EMULATED.get(self.name.removesuffix(_SUFFIX), ())

    def session(self, source: str | bytes, config: Any, options: Mapping[str, str]) -> Any:
        """Return a session of ONNX Runtime's own that prefers this provider."""
        if self.plugin is None:
            names = [(self.name, dict(options))]
            return ort.InferenceSession(source, config, providers=names, enable_fallback=0)
        config.add_provider_for_devices([self.plugin], dict(options))
        return ort.InferenceSession(source, config, enable_fallback=0)

    def options(self, given: Mapping[str, str], *, exact: bool) -> dict[str, str]:
        """Return what it is given: what the file says, and what it needs besides."""
        if self.plugin is None:
            return dict(given)
        own = {**self.carrier.defaults, **(self.carrier.exact if exact else {})}
        needed = {keys[0]: value for keys, value in own.items() if not set(keys) & set(given)}
        return {**needed, **given}

    def placement(self, session: Any) -> Placement | None:
        """Count the nodes that this provider took; None where this version does not tell."""
        if not TELLS_PLACEMENT:
            return None
        counts: dict[str, int] = {}
        for part in session.get_provider_graph_assignment_info():
            counts[part.ep_name] = counts.get(part.ep_name, 0) + len(part.get_nodes())
        return Placement(counts.get(self.name, 0), sum(counts.values()), "nodes")


TELLS_PLACEMENT = hasattr(ort.InferenceSession, "get_provider_graph_assignment_info")
_registered: dict[str, str] = {}


def names() -> tuple[str, ...]:
    """Name the providers that are here: plug-ins of installed packages, and those built in.

    A package whose library cannot be loaded is named too: who tries it learns why.
    """
    broken = []
    for short, carrier in CARRIERS.items():
        if not _has_plugin(carrier):
            continue
        try:
            _register(f"{short}{_SUFFIX}", _library_of(carrier), f"onnxruntime:{short}")
        except DeviceError:
            broken.append(short)
    plugins = [Provider(device.ep_name, device).short for device in _plugins()]
    built_in = [name.removesuffix(_SUFFIX) for name in _built_in()]
    return tuple(dict.fromkeys([*plugins, *broken, *built_in]))


def find(device: str, place: str, library: str = "", name: str = "") -> Provider:
    """Return the provider that a device means.

    Args:
        device: As in the file, after ``onnxruntime:``.
        place: With which errors begin.
        library: Path of a plug-in's library, where the file names it.
        name: What that library calls its provider, where it is not called as the device.

    Raises:
        DeviceError: It is not here, with what brings it; or it drives several kinds of hardware
            and none is named.
    """
    short, _, hardware = device.removesuffix(_SUFFIX).partition(".")
    full = name or next((n for n in _known() if _same(n, short)), f"{short}{_SUFFIX}")
    carrier = CARRIERS.get(full.removesuffix(_SUFFIX), Carrier(""))
    if library or _has_plugin(carrier):
        _register(full, library or _library_of(carrier), place)
    elif full in _built_in():
        return Provider(full)
    found = [each for each in _plugins() if each.ep_name == full]
    if not found:
        raise _absent(device, carrier, place)
    return Provider(full, _one_of(found, hardware, short, place), carrier)


def _known() -> list[str]:
    return [*_built_in(), *(f"{short}{_SUFFIX}" for short in CARRIERS)]


def _built_in() -> list[str]:
    """Return the providers that this build has; plug-ins are listed too once registered."""
    plugins = {each.ep_name for each in _plugins()}
    here = ort.get_available_providers()
    known = {*plugins, *_NO_DEVICES}
    return [name for name in here if name not in known and not name.endswith(_CHOOSES)]


def _plugins() -> list[Any]:
    """Return what plug-ins drive here, without the one that chooses by itself."""
    if not hasattr(ort, "get_ep_devices"):
        return []
    devices = ort.get_ep_devices()
    return [each for each in devices if each.ep_name != CPU and not each.ep_name.endswith(_CHOOSES)]


def _register(full: str, library: str, place: str) -> None:
    if _registered.get(full) == library:
        return
    if full in _registered:
        fault = f"{full} was registered from {_registered[full]}, not from {library}"
        raise DeviceError(f"{place}, options, provider_library", fault, "Name one library")
    register = getattr(ort, "register_execution_provider_library", None)
    if register is None:
        fault = f"onnxruntime {ort.__version__} takes no plug-ins"
        raise DeviceError(place, fault, "Run: pip install --upgrade onnxruntime")
    try:
        register(full, library)
    except RAISED as error:
        raise DeviceError(place, f"its library cannot be loaded: {reason(error)}") from error
    _registered[full] = library


def _has_plugin(carrier: Carrier) -> bool:
    return bool(carrier.module) and importlib.util.find_spec(carrier.module) is not None


def _library_of(carrier: Carrier) -> str:
    return str(import_module(carrier.module).get_library_path())


def _one_of(found: list[Any], hardware: str, short: str, place: str) -> Any:
    kinds = {_hardware(each): each for each in reversed(found)}
    there = ", ".join(f"{short}.{kind}" for kind in kinds)
    if hardware and hardware.upper() not in kinds:
        raise DeviceError(place, f"the provider finds no {hardware} here", f"It has: {there}")
    if not hardware and len(kinds) > 1:
        fault = "the provider drives several kinds of hardware, and would choose by itself"
        raise DeviceError(place, fault, f"Name one: {there}")
    return kinds[hardware.upper()] if hardware else next(iter(kinds.values()))


def _absent(device: str, carrier: Carrier, place: str) -> DeviceError:
    mend = carrier.mend or f"This build has: {', '.join(names())}"
    return DeviceError(place, f"there is no execution provider {device!r} here", mend)


def _same(full: str, short: str) -> bool:
    return full.removesuffix(_SUFFIX).lower() == short.lower()


def _hardware(device: Any) -> str:
    return str(device.device.type.name)

"""What a device means to OpenVINO: one device, or several of which it takes or splits.

    NPU               one device, and only that
    HETERO:GPU,CPU    the first takes the operators it can, the next one the rest
    AUTO:NPU,CPU      the first that works

The last two only where they are named with their devices, and what they did is read back.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from edgert.backends.base import CompileRequest
from edgert.backends.options import unknown_option
from edgert.backends.placement import Placement
from edgert.errors import DeviceError

HETERO = "HETERO"
AUTO = "AUTO"
_NO_OPERATORS = ("Constant", "Parameter", "Result")


class Target(msgspec.Struct, frozen=True):
    """A device as OpenVINO gets it.

    Attributes:
        name: The whole, as ``compile_model`` takes it.
        devices: The devices it may run on, in their order.
        kind: ``HETERO``, ``AUTO``, or empty for one device.
    """

    name: str
    devices: tuple[str, ...]
    kind: str = ""

    def prefix_of(self, landed: str) -> bool:
        """Whether a device that was read back is one of those asked for."""
        return any(landed.startswith(device) for device in self.devices)


def target_of(device: str, here: Sequence[str], place: str) -> Target:
    """Return what a device means.

    Raises:
        DeviceError: One of its devices is not here, or none is named for OpenVINO to choose from.
    """
    kind, colon, listed = device.partition(":")
    if not colon and device not in (AUTO, HETERO):
        kind, listed = "", device
    devices = tuple(name.strip() for name in listed.split(",") if name.strip())
    if kind not in ("", AUTO, HETERO):
        fault = f"there is no device {device!r} here"
        raise DeviceError(place, fault, f"OpenVINO has: {', '.join(here)}")
    if not devices:
        raise DeviceError(place, "it names no device", f"Write them: {kind}:{','.join(here)}")
    for name in devices:
        # With two GPUs there are GPU.0 and GPU.1, and GPU means the first.
        if name not in here and not any(each.startswith(f"{name}.") for each in here):
            fault = f"there is no device {name!r} here"
            raise DeviceError(place, fault, f"OpenVINO has: {', '.join(here)}")
    return Target(f"{kind}:{','.join(devices)}" if kind else devices[0], devices, kind)


def config_of(core: Any, target: Target, request: CompileRequest, place: str) -> dict[str, Any]:
    """Return the properties a model is compiled with: ours, then the file's.

    Raises:
        DeviceError: The file has one that the device does not know.
    """
    own = {device: _own(device, request) for device in target.devices}
    known = settable(core, target)
    for key in request.options:
        if key not in known:
            raise unknown_option(key, known, place)
    if not target.kind:
        return {**own[target.name], **request.options}
    config: dict[str, Any] = {"DEVICE_PROPERTIES": {name: own[name] for name in own if own[name]}}
    if target.kind == AUTO:
        # Otherwise the CPU computes until the other device is ready, and nobody is told.
        config["ENABLE_STARTUP_FALLBACK"] = False
    return {**config, **request.options}


def settable(core: Any, target: Target) -> list[str]:
    """Name the properties that a model can be compiled with."""
    known = core.get_property(target.kind or target.name, "SUPPORTED_PROPERTIES")
    own = ["DEVICE_PROPERTIES"] if target.kind == HETERO else []
    return own + [name for name, access in known.items() if access == "RW"]


def count_placed(core: Any, model: Any, target: Target) -> Placement:
    """Count the operators that the first device of a ``HETERO`` takes."""
    where: Mapping[str, str] = core.query_model(model, target.name)
    nodes = [node for node in model.get_ordered_ops() if node.get_type_name() not in _NO_OPERATORS]
    first = sum(
        where.get(node.get_friendly_name(), "").startswith(target.devices[0]) for node in nodes
    )
    return Placement(first, len(nodes))


def _own(device: str, request: CompileRequest) -> dict[str, Any]:
    config: dict[str, Any] = {}
    if device == "CPU":
        config["INFERENCE_NUM_THREADS"] = request.threads
        # Who gives a hint wants OpenVINO to choose the streams.
        if "PERFORMANCE_HINT" not in request.options:
            config["NUM_STREAMS"] = request.lanes
        # Placement is the plan's: the worker's affinity mask holds for these threads too.
        config["ENABLE_CPU_PINNING"] = False
    if request.precision == "f32" and device.startswith(("CPU", "GPU")):
        config["INFERENCE_PRECISION_HINT"] = "f32"
    return config

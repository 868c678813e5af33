"""Opens every device that a plan asks for, one after the other, each in a child of its own.

What takes a model is known only when it has: so the stage itself is opened, as a worker would, with
its own time limit; what crashes or hangs ends a child and is told.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from edgert import isolate
from edgert.device.cores import pin
from edgert.errors import DeviceError, EdgertError
from edgert.options import restore
from edgert.plan.opening import make_stage
from edgert.plan.structs import Plan, StagePlan
from edgert.stages.registry import Registry

_FUNCTION = "edgert.plan.probe:open_one"
_CHILD_STARTS_WITHIN_S = 5.0


class Probed(msgspec.Struct, frozen=True):
    """What became of one device.

    Attributes:
        device: As in the file.
        actual: Where the model landed, read back; empty where it was refused.
        precision: What it computes in.
        placed: How much of the model the device took, where that is known.
        runtime: Name and version of the runtime.
        emulated: Whether a stand-in did it.
        open_s: Seconds to compile and warm up.
        variants: What each further size that the model is compiled for costs.
        refused: Why it was refused; empty where it was taken.
    """

    device: str
    actual: str = ""
    precision: str = ""
    placed: str = ""
    runtime: str = ""
    emulated: bool = False
    open_s: float = 0.0
    variants: dict[str, dict[str, float]] = {}
    refused: str = ""


def probe(plan: Plan) -> dict[str, tuple[Probed, ...]]:
    """Return for each stage with devices what became of each of them, in their order."""
    cores = {stage.name: worker.cores for worker in plan.workers for stage in worker.stages}
    return {
        stage.name: tuple(
            _probe_one(plan, stage, cores[stage.name], device, within_s) for device in devices
        )
        for stage, devices, within_s in _stages_with_devices(plan)
    }


def open_one(
    stage: Mapping[str, Any], streams: Sequence[str], folder: str, cores: Sequence[int]
) -> dict[str, Any]:
    """Open a stage and close it; meant for a child process.

    Returns:
        What it reports of its device and variants, and the seconds that opening took.

    Raises:
        EdgertError: It refuses.
    """
    pin(tuple(cores))
    opened = make_stage(msgspec.convert(stage, StagePlan), tuple(streams), folder)
    began_s = time.monotonic()
    opened.open()
    took_s = time.monotonic() - began_s
    opened.close()
    report = opened.context.report
    return {
        "device": report["device"],
        "variants": report.get("variants", {}),
        "open_s": round(took_s, 3),
    }


def _stages_with_devices(plan: Plan) -> Iterator[tuple[StagePlan, list[str], float]]:
    registry = Registry()
    for stage in plan.stages():
        options = restore(registry.stage_class(stage.kind).options, stage.settings)
        devices = getattr(options, "devices", None)
        if devices:
            yield stage, devices, getattr(options, "open_timeout_s", _CHILD_STARTS_WITHIN_S)


def _probe_one(
    plan: Plan, stage: StagePlan, cores: Sequence[int], device: str, within_s: float
) -> Probed:
    settings = {key: value for key, value in stage.settings.items() if key != "balance"}
    alone = msgspec.structs.replace(stage, settings={**settings, "device": device})
    arguments = {
        "stage": msgspec.to_builtins(alone, str_keys=True),
        "streams": list(plan.streams),
        "folder": plan.folder,
        "cores": list(cores),
    }
    place = f"stage '{stage.name}', device '{device}'"
    try:
        found = isolate.call(
            _FUNCTION, arguments, within_s + _CHILD_STARTS_WITHIN_S, place, DeviceError
        )
    except EdgertError as error:
        return Probed(device, refused="; ".join(fault.fault for fault in error.faults))
    taken = found["device"]
    known = ("actual", "precision", "placed", "runtime", "emulated")
    return Probed(
        device,
        **{key: taken[key] for key in known},
        open_s=found["open_s"],
        variants=found["variants"],
    )

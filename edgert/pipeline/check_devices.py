"""Limits of devices that no stage asks for, and inferences that share cores by accident."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from itertools import combinations

from edgert.device.cores import parse_list
from edgert.errors import Fault
from edgert.options import Options
from edgert.pipeline.document import Document
from edgert.pipeline.near import choices
from edgert.pipeline.spec import CORE_CLASSES, Cores


def check_devices(document: Document, options: Mapping[str, Options]) -> Iterator[Fault]:
    """Find limits of devices that no stage asks for."""
    asked = [device for made in options.values() for device in devices_of(made)]
    for name in document.spec.devices:
        if not any(device in (name, name.partition(":")[2]) for device in asked):
            fault = "no stage asks for this device"
            mend = choices(name, sorted(set(asked)), "Asked for") if asked else "Remove it"
            yield document.marks.fault(("devices", name), fault, mend, at_key=True)


def warn_shared_cores(document: Document, options: Mapping[str, Options]) -> Iterator[Fault]:
    """Warn of stages of different workers whose inferences have cores in common, as written."""
    infer = [
        (name, stage, _cores_named(stage.cores))
        for name, stage in document.spec.stages.items()
        if stage.cores is not None and name in options and devices_of(options[name])
    ]
    for (one, its, cores), (other, theirs, others) in combinations(infer, 2):
        is_one_worker = its.worker is not None and its.worker == theirs.worker
        if cores & others and not is_one_worker:
            shared = ", ".join(sorted(cores & others, key=lambda core: (len(core), core)))
            fault = f"its inferences share cores with those of stage '{one}': {shared}"
            mend = "Give each its own, or leave 'cores' out: then the system shares them out"
            yield document.fault(("stages", other, "cores"), "", fault, mend)


def _cores_named(cores: Cores | None) -> set[str]:
    """Return what a file says of cores: their numbers, or a class of them; none for ``any``."""
    if cores in (None, "any"):
        return set()
    if isinstance(cores, tuple):
        return set(map(str, cores))
    if cores in CORE_CLASSES:
        return {str(cores)}
    with suppress(ValueError):  # a core that no machine has: the plan says so
        return set(map(str, parse_list(str(cores))))
    return set()


def devices_of(options: Options) -> tuple[str, ...]:
    """Return the devices that a stage asks for; none where its kind knows none."""
    device = getattr(options, "balance", None) or getattr(options, "device", None) or ()
    return (device,) if isinstance(device, str) else tuple(device)

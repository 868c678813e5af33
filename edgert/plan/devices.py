"""What stages ask of devices: which, how many requests in flight, and what is not known yet."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from edgert.stages.infer_requests import REQUESTS
from edgert.tensor import PortSpec


def requested(options: Mapping[str, Any]) -> dict[str, tuple[str, ...]]:
    """Return the devices that stages ask for (stages whose options have a ``device``)."""
    found = {}
    for name, made in options.items():
        device = getattr(made, "device", None)
        if device is not None:
            found[name] = (device,) if isinstance(device, str) else tuple(device)
    return found


def requests_of(
    stages: Iterable[str], ports: Mapping[str, Mapping[str, PortSpec]]
) -> dict[str, int]:
    """Return the requests in flight that stages have planned, by stage."""
    return {
        stage: port.attributes[REQUESTS]
        for stage in stages
        for port in ports[stage].values()
        if REQUESTS in port.attributes
    }


def unknown_devices(stages: Iterable[str]) -> tuple[str, ...]:
    """Say what a plan cannot know of the devices of stages."""
    return tuple(
        f"stage '{name}': the device that takes the model, until a worker has tried"
        for name in stages
    )

"""What stages ask of devices: which, how many requests in flight, and what is not known yet."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from edgert.pipeline.spec import PipelineSpec
from edgert.plan.replicas import Replicas
from edgert.plan.structs import Turns
from edgert.stages.infer_requests import REQUESTS
from edgert.tensor import PortSpec
from edgert.transport.permits import RANKS


def requested(replicas: Replicas) -> dict[str, tuple[str, ...]]:
    """Return the devices that workers ask for, by the names of their stages."""
    shares = [share for each in replicas.values() for share in each]
    return {share.name: share.devices for share in shares if share.devices}


def requests_of(replicas: Replicas, ports: Mapping[str, Mapping[str, PortSpec]]) -> dict[str, int]:
    """Return the requests in flight that stages have planned, by the names of their workers'."""
    return {
        share.name: port.attributes[REQUESTS]
        for stage, shares in replicas.items()
        for port in ports[stage].values()
        if REQUESTS in port.attributes
        for share in shares
    }


def turns_of(spec: PipelineSpec, replicas: Replicas, options: Mapping[str, Any]) -> Turns:
    """Return the limits of devices, and the rank of every worker that may use one."""
    if not spec.devices:
        return Turns()
    ranks = {
        share.name: RANKS[getattr(options[stage], "priority", "normal")]
        for stage, shares in replicas.items()
        for share in shares
        if share.devices
    }
    limits = {device: limit.max_requests for device, limit in spec.devices.items()}
    return Turns(limits, ranks)


def unknown_devices(stages: Iterable[str]) -> tuple[str, ...]:
    """Say what a plan cannot know of the devices of stages."""
    return tuple(
        f"stage '{name}': the device that takes the model, until a worker has tried"
        for name in stages
    )

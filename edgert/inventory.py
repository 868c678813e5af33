"""The hardware that the kernel shows, joined with what the runtimes really have.

Hardware alone is no presence, and neither is a runtime's word alone: an accelerator is usable when
its node can be opened and a runtime that uses it has run a model there (or, where the trial model
is not for that runtime, lists it).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from edgert.backends.survey import DeviceState, MissingRuntime, Runtime, survey
from edgert.device import accelerators, cpu
from edgert.device.accelerators import Accelerator
from edgert.device.cpu import Cpu

Runtimes = Sequence[Runtime | MissingRuntime]
_OWN_BACKEND = "Write a backend for it: docs/new-backend.md"


class Finding(msgspec.Struct, frozen=True):
    """One accelerator that the kernel shows, and whether it can be used.

    Attributes:
        kind: What it is.
        node: Its node in /dev; empty where there is none.
        driver: Its driver; empty where that is not known.
        driver_version: Empty where the driver does not say.
        usable: Whether a runtime has it; None where that cannot be told.
        by: What it is called in a pipeline file, ``runtime:DEVICE``; empty where it is not usable.
        reason: Why it is not usable; empty where it is.
        mend: What to do about it.
    """

    kind: str
    node: str
    driver: str
    driver_version: str
    usable: bool | None
    by: tuple[str, ...] = ()
    reason: str = ""
    mend: str = ""


class Inventory(msgspec.Struct, frozen=True):
    """What this machine has to run models on."""

    cpu: Cpu
    runtimes: tuple[Runtime | MissingRuntime, ...]
    accelerators: tuple[Finding, ...]


def take(root: Path = Path("/")) -> Inventory:
    """Look at the machine and ask the runtimes; takes seconds, each runtime in its own child.

    Args:
        root: Where /dev, /proc and /sys are found.
    """
    runtimes = survey()
    return Inventory(cpu.read(root), runtimes, judge(accelerators.find(root), runtimes))


def judge(seen: Sequence[Accelerator], runtimes: Runtimes) -> tuple[Finding, ...]:
    """Say of each accelerator whether it is usable, and else why not and what to do."""
    return tuple(_judge(each, seen, runtimes) for each in seen)


def _judge(each: Accelerator, seen: Sequence[Accelerator], runtimes: Runtimes) -> Finding:
    blocked = _what_blocks(each)
    if blocked:
        return _finding(each, *blocked, usable=False)
    devices = dict(_devices_for(each.kind.uses, runtimes))
    by = tuple(name for name, device in devices.items() if device.usable)
    alike = sum(other.is_permitted and other.kind.uses == each.kind.uses for other in seen)
    # Two names of one runtime, such as CUDA and Tensorrt, may mean the same card.
    most = max(sum(_is_meant(name, use) for name in by) for use in each.kind.uses)
    if by and most < alike:
        reason = f"{', '.join(by)} stands for {most} of the {alike} here: not known for which"
        return _finding(each, reason, "", usable=None)
    if by:
        return _finding(each, "", "", usable=True, by=by)
    return _finding(each, *_why_no_runtime(each, devices, runtimes), usable=False)


def _what_blocks(each: Accelerator) -> tuple[str, str] | None:
    """Return reason and mend where no runtime could use it; None where one could."""
    if not each.node:
        return "the kernel gives it no node in /dev", each.kind.driver
    if not each.has_node:
        otherwise = f"{each.kind.driver[0].lower()}{each.kind.driver[1:]}"
        mend = f"In a container, start it with --device {each.node}; otherwise {otherwise}"
        return f"{each.node} is not there", mend
    if not each.is_permitted:
        return f"this user may not open {each.node}", each.permission_mend
    if not each.kind.uses:
        return "no runtime of edgert uses it", _OWN_BACKEND
    return None


def _devices_for(uses: Sequence[str], runtimes: Runtimes) -> Iterator[tuple[str, DeviceState]]:
    """Yield the devices of real hardware that ``uses`` names."""
    for runtime in runtimes:
        if isinstance(runtime, MissingRuntime):
            continue
        for device in runtime.devices:
            name = f"{runtime.name}:{device.device}"
            if not device.emulated and any(_is_meant(name, use) for use in uses):
                yield name, device


def _is_meant(name: str, use: str) -> bool:
    """Return whether ``use`` means a device: with two GPUs, ``GPU`` means GPU.0 and GPU.1."""
    return name == use or name.startswith(f"{use}.")


def _why_no_runtime(
    each: Accelerator, devices: dict[str, DeviceState], runtimes: Runtimes
) -> tuple[str, str]:
    for name, device in devices.items():
        return f"{name}: {device.reason}", device.mend
    wanted = each.kind.uses[0].partition(":")[0]
    runtime = next((one for one in runtimes if one.name == wanted), None)
    if runtime is None:
        return f"edgert has no backend {wanted!r}", _OWN_BACKEND
    if isinstance(runtime, MissingRuntime):
        return f"{wanted}: {runtime.missing}", runtime.mend
    return f"{runtime.version} does not list {each.kind.uses[0]}", each.kind.library


def _finding(
    each: Accelerator, reason: str, mend: str, *, usable: bool | None, by: tuple[str, ...] = ()
) -> Finding:
    return Finding(
        each.kind.name, each.node, each.driver, each.driver_version, usable, by, reason, mend
    )

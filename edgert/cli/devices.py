"""``edgert devices``: what there is to run models on, and what keeps the rest from it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from edgert.cli.profiles import show_profile, show_profiles
from edgert.cli.render import sentences, show, show_json, table

if TYPE_CHECKING:
    from edgert.backends.survey import DeviceState, Runtime
    from edgert.device.cpu import Cpu
    from edgert.inventory import Finding, Inventory

SCHEMA = "edgert.devices/1"
DEVICE_HEADERS = ("DEVICE", "USABLE", "NAME", "VERSION", "WHY NOT")
ACCELERATOR_HEADERS = ("ACCELERATOR", "NODE", "DRIVER", "USABLE", "AS", "WHY NOT")


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.option(
    "--profile",
    metavar="[NAME|PATH]",
    is_flag=False,
    flag_value="",
    help="Show a device profile instead, and what this machine has of it; that of this machine "
    "where none is named.",
)
@click.option("--profiles", is_flag=True, help="List the device profiles instead.")
def command(*, as_json: bool, profile: str | None, profiles: bool) -> None:
    """Show the CPU, the devices of every runtime, and the accelerators that the kernel shows.

    Runtimes are asked in processes of their own, and their accelerators have to run a small model.
    What is not usable is shown with the reason and what to do about it.
    """
    if profiles:
        show_profiles(as_json=as_json)
    elif profile is not None:
        show_profile(profile, as_json=as_json)
    else:
        _show_devices(as_json=as_json)


def _show_devices(*, as_json: bool) -> None:
    import msgspec

    from edgert.inventory import take

    found = take()
    if as_json:
        show_json({"schema": SCHEMA, **msgspec.to_builtins(found)})
    else:
        show("\n\n".join(_sections(found)))


def _sections(found: Inventory) -> Iterator[str]:
    yield "\n".join(f"{name:<10}  {said}" for name, said in _cpu_rows(found.cpu) if said)
    yield table(DEVICE_HEADERS, _device_rows(found))
    if found.accelerators:
        yield table(ACCELERATOR_HEADERS, map(_accelerator_row, found.accelerators))
    else:
        yield "No accelerator is seen in /dev, on PCI or on USB."


def _cpu_rows(cpu: Cpu) -> Iterator[tuple[str, str]]:
    from edgert.device.cores import as_list
    from edgert.device.memory import in_units

    yield "cpu", f"{cpu.model} ({cpu.vendor}, {cpu.architecture})"
    yield "board", cpu.board
    yield "features", " ".join(cpu.features)
    yield "cores", f"{cpu.cores}, this process may use {as_list(cpu.allowed)}"
    for name, numbers in cpu.classes.items():
        yield name, as_list(numbers)
    yield "quota", f"{cpu.quota_cores:g} cores (cgroup)" if cpu.quota_cores else ""
    yield "memory", in_units(cpu.memory_bytes)
    yield "limit", f"{in_units(cpu.memory_limit_bytes)} (cgroup)" if cpu.memory_limit_bytes else ""


def _device_rows(found: Inventory) -> Iterator[tuple[str, ...]]:
    from edgert.backends.survey import MissingRuntime

    for runtime in found.runtimes:
        if isinstance(runtime, MissingRuntime):
            yield runtime.name, "no", "", "", sentences(runtime.missing, runtime.mend)
            continue
        for device in runtime.devices:
            yield _device_row(runtime, device, found.cpu)


def _device_row(runtime: Runtime, device: DeviceState, cpu: Cpu) -> tuple[str, ...]:
    usable = "emulated" if device.emulated else _yes_or_no(device.usable)
    name = device.name or (cpu.model if device.device == "CPU" else "")
    version = f"{runtime.version}, driver {device.driver}" if device.driver else runtime.version
    why = sentences(device.reason, device.mend)
    return f"{runtime.name}:{device.device}", usable, name, version, why


def _accelerator_row(each: Finding) -> tuple[str, ...]:
    driver = f"{each.driver or 'unknown'} {each.driver_version}".rstrip()
    why = sentences(each.reason, each.mend)
    return each.kind, each.node or "none", driver, _yes_or_no(each.usable), ", ".join(each.by), why


def _yes_or_no(usable: bool | None) -> str:  # noqa: FBT001  it is the whole of what is asked
    return "unknown" if usable is None else "yes" if usable else "no"

"""What a machine shows of itself that a profile can be recognised by."""

from __future__ import annotations

import platform
from dataclasses import dataclass
from pathlib import Path

from edgert.device import accelerators, buses, cores, cpu

_DMI = ("sys_vendor", "product_name", "board_vendor", "board_name")


@dataclass(frozen=True, slots=True)
class Machine:
    """What the kernel shows.

    Attributes:
        traits: Rule of ``Match`` -> what this machine has for it.
        cores: Numbers of the cores that are there, online or not; empty where that is not told.
        classes: Cores by class, as the kernel tells; empty where it does not.
    """

    traits: dict[str, frozenset[str]]
    cores: frozenset[int] = frozenset()
    classes: dict[str, tuple[int, ...]] | None = None


def look(root: Path = Path("/"), architecture: str | None = None) -> Machine:
    """Read what this machine is; a matter of milliseconds.

    Args:
        root: Where /dev, /proc and /sys are found.
        architecture: As ``uname -m`` has it; asked of the kernel where it is not given.
    """
    processor = cpu.read(root, allowed=(), architecture=architecture or platform.machine())
    kinds = {each.kind.name for each in accelerators.find(root)}
    return Machine(
        {
            "architecture": frozenset({processor.architecture}),
            "cpu": frozenset({processor.model}),
            "compatible": _compatible(root),
            "board": _board(root),
            "pci": frozenset(identity for identity, _ in buses.on_pci(root)),
            "usb": frozenset(identity for identity, _ in buses.on_usb(root)),
            "accelerators": frozenset(kinds),
        },
        _present(root),
        processor.classes,
    )


def _compatible(root: Path) -> frozenset[str]:
    text = buses.text(root / "sys/firmware/devicetree/base/compatible")
    return frozenset(filter(None, (part.strip() for part in text.split("\0"))))


def _board(root: Path) -> frozenset[str]:
    texts = (buses.text(root / "sys/class/dmi/id" / name) for name in _DMI)
    return frozenset(filter(None, texts))


def _present(root: Path) -> frozenset[int]:
    try:
        return frozenset(cores.parse_list(buses.text(root / "sys/devices/system/cpu/present")))
    except ValueError:
        return frozenset()

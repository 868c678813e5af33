"""The accelerators that the kernel shows: nodes in /dev, devices on PCI and USB, their drivers.

That one is here says nothing of whether a runtime can use it: see ``inventory.py``.
"""

from __future__ import annotations

import fnmatch
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from edgert.device import buses, permission
from edgert.device.kinds import KINDS, Kind, kind_of

# Class in /sys -> where its nodes stand below /dev. In a container /sys shows what /dev lacks.
_CLASSES = {"accel": "accel/", "drm": "dri/", "apex": "", "hailo_chardev": "", "misc": ""}
_PATTERNS = sorted({"accel/accel*", *(pattern for kind in KINDS for pattern in kind.nodes)})
_NPU_OF_A_BOARD = "*npu*"


class Accelerator(NamedTuple):
    """One accelerator that the kernel shows.

    Attributes:
        kind: What it is.
        node: Its node; empty where the kernel gives it none.
        driver: Its driver; empty where that is not known.
        driver_version: Empty where the driver does not say.
        has_node: Whether the node is in /dev.
        is_permitted: Whether this process may read and write the node.
        permission_mend: What would permit it; empty where it is permitted or there is no node.
    """

    kind: Kind
    node: str
    driver: str = ""
    driver_version: str = ""
    has_node: bool = False
    is_permitted: bool = False
    permission_mend: str = ""


class _Seen(NamedTuple):
    """Something in /sys or /dev that may be an accelerator."""

    kind: Kind
    node: str
    driver: str
    address: str = ""


def find(
    root: Path = Path("/"), may_use: permission.MayUse = permission.may_use
) -> tuple[Accelerator, ...]:
    """Return every accelerator that the kernel shows.

    Args:
        root: Where /dev and /sys are found.
        may_use: Whether this process may use a node.
    """
    seen = list(_with_nodes(root))
    addresses = {each.address for each in seen if each.address}
    seen += [each for each in _on_pci(root) if each.address not in addresses]
    seen += _on_usb(root)
    if not any("rknpu" in each.kind.drivers for each in seen):
        seen += _on_board(root)
    return tuple(_describe(each, root, may_use) for each in seen)


def _with_nodes(root: Path) -> Iterator[_Seen]:
    """Yield what has a node in /dev, or a class in /sys that says it should have one."""
    dev = root / "dev"
    names = {
        str(path.relative_to(dev)) for pattern in _PATTERNS for path in dev.glob(pattern)
    } | set(_class_names(root))
    has_nvidia = any(fnmatch.fnmatch(name, "nvidia[0-9]*") for name in names)
    for name in sorted(names):
        device = _device_of(root, name)
        driver = _link_name(device / "driver") if device else ""
        if driver == "nvidia" and has_nvidia:
            continue  # the render node of a card that is seen by its own node
        kind = kind_of(name, driver)
        if kind is not None:
            yield _Seen(kind, name, driver, device.resolve().name if device else "")


def _class_names(root: Path) -> Iterator[str]:
    for folder, prefix in _CLASSES.items():
        for path in (root / "sys/class" / folder).glob("*"):
            name = f"{prefix}{path.name}"
            if any(fnmatch.fnmatch(name, pattern) for pattern in _PATTERNS):
                yield name


def _device_of(root: Path, name: str) -> Path | None:
    """Return the folder in /sys of the device that a node belongs to."""
    for folder, prefix in _CLASSES.items():
        device = root / "sys/class" / folder / name.removeprefix(prefix) / "device"
        if name.startswith(prefix) and device.is_dir():
            return device
    return None


def _on_pci(root: Path) -> Iterator[_Seen]:
    for identity, folder in buses.on_pci(root):
        for kind in KINDS:
            if identity in kind.pci:
                yield _Seen(kind, "", _link_name(folder / "driver"), folder.resolve().name)


def _on_usb(root: Path) -> Iterator[_Seen]:
    for identity, folder in buses.on_usb(root):
        for kind in KINDS:
            if identity in kind.usb:
                bus, device = buses.text(folder / "busnum"), buses.text(folder / "devnum")
                yield _Seen(kind, f"bus/usb/{bus:0>3}/{device:0>3}", "")


def _on_board(root: Path) -> Iterator[_Seen]:
    """Yield a Rockchip NPU whose driver is bound to it, although no node shows it."""
    kind = next(kind for kind in KINDS if "rknpu" in kind.drivers)
    for driver in ("RKNPU", "rknpu"):
        folder = root / "sys/bus/platform/drivers" / driver
        for bound in sorted(folder.glob(_NPU_OF_A_BOARD))[:1]:
            yield _Seen(kind, "", driver, bound.name)


def _describe(seen: _Seen, root: Path, may_use: permission.MayUse) -> Accelerator:
    driver = seen.driver or _loaded(seen.kind, root)
    version = (
        buses.text(root / "sys/module" / driver.replace("-", "_") / "version") if driver else ""
    )
    path = root / "dev" / seen.node
    name = f"/dev/{seen.node}" if seen.node else ""
    if not seen.node or not path.exists():
        return Accelerator(seen.kind, name, driver, version)
    permitted = may_use(path)
    mend = "" if permitted else permission.mend(path, name)
    return Accelerator(
        seen.kind,
        name,
        driver,
        version,
        has_node=True,
        is_permitted=permitted,
        permission_mend=mend,
    )


def _loaded(kind: Kind, root: Path) -> str:
    """Return the driver of this kind that is loaded, for nodes of which /sys names no driver."""
    return next((name for name in kind.drivers if (root / "sys/module" / name).is_dir()), "")


def _link_name(link: Path) -> str:
    return link.resolve().name if link.exists() else ""

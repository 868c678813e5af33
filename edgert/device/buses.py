"""What the kernel shows on PCI and on USB."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path


def on_pci(root: Path) -> Iterator[tuple[str, Path]]:
    """Yield ``vendor:device`` of everything on PCI, and its folder in /sys."""
    for folder in sorted((root / "sys/bus/pci/devices").glob("*")):
        vendor, device = text(folder / "vendor"), text(folder / "device")
        yield f"{vendor.removeprefix('0x')}:{device.removeprefix('0x')}", folder


def on_usb(root: Path) -> Iterator[tuple[str, Path]]:
    """Yield ``vendor:product`` of everything on USB, and its folder in /sys."""
    for folder in sorted((root / "sys/bus/usb/devices").glob("*")):
        yield f"{text(folder / 'idVendor')}:{text(folder / 'idProduct')}", folder


def text(file: Path) -> str:
    """Return what stands in a file of /sys; empty where it cannot be read."""
    try:
        return file.read_text(errors="replace").strip()
    except OSError:
        return ""

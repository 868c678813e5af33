"""Trees with the files of /dev, /proc and /sys that a test is about."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path


def write(root: Path, files: Mapping[str, object]) -> Path:
    """Write files by their path below ``root``, each ended by a newline."""
    for name, content in files.items():
        file = root / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"{content}\n")
    return root


def link(root: Path, name: str, target: str) -> None:
    """Make ``name`` a link to the folder ``target``, both below ``root``."""
    (root / target).mkdir(parents=True, exist_ok=True)
    (root / name).parent.mkdir(parents=True, exist_ok=True)
    (root / name).symlink_to(root / target)


def node(root: Path, name: str, address: str = "", driver: str = "", kind: str = "") -> None:
    """Put a node into /dev, and into /sys its class ``kind`` with the device behind it."""
    write(root, {f"dev/{name}": ""})
    if kind:
        class_entry(root, name.rpartition("/")[2], address, driver, kind)


def class_entry(root: Path, name: str, address: str, driver: str, kind: str) -> None:
    """Put a device into /sys alone, as a container without its node shows it."""
    device = f"sys/devices/{address}"
    link(root, f"sys/class/{kind}/{name}/device", device)
    if driver:
        link(root, f"{device}/driver", f"sys/bus/any/drivers/{driver}")

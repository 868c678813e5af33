"""Memory that can still be had, and a clear refusal before the kernel kills."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from edgert.device import cgroup
from edgert.errors import ResourceError

_UNITS = ("bytes", "KiB", "MiB", "GiB", "TiB")


class Available(NamedTuple):
    """Memory that can be had.

    Attributes:
        bytes: How much.
        why: What bounds it, to be read after the number.
    """

    bytes: int
    why: str


def available_bytes(root: Path = Path("/")) -> Available:
    """Return how much memory this process can still have: by the machine and its control groups.

    Args:
        root: Where /proc and /sys are found.
    """
    machine = Available(_machine_bytes(root / "proc/meminfo"), "MemAvailable of this machine")
    limit = cgroup.memory_limit(root)
    if limit is None or limit.free_bytes >= machine.bytes:
        return machine
    used, most = in_units(limit.used_bytes), in_units(limit.limit_bytes)
    return Available(limit.free_bytes, f"control group {limit.group} uses {used} of its {most}")


def require(needed_bytes: int, available: Available, what: str, mend: str) -> None:
    """Refuse what cannot fit.

    Args:
        needed_bytes: How much ``what`` takes.
        available: How much there is.
        what: What needs it, for example ``rings of pipeline 'detect'``.
        mend: Which key to change.

    Raises:
        ResourceError: There is too little, with both numbers.
    """
    if needed_bytes <= available.bytes:
        return
    raise ResourceError(
        what,
        f"{in_units(needed_bytes)} of memory are needed and {in_units(available.bytes)} can be had "
        f"({available.why})",
        mend,
    )


def in_units(count: int) -> str:
    """Return a number of bytes as it is read: ``512 bytes``, ``8.0 MiB``."""
    size, unit = float(count), 0
    while size >= 1024 and unit < len(_UNITS) - 1:
        size, unit = size / 1024, unit + 1
    return f"{size:.1f} {_UNITS[unit]}" if unit else f"{count} {_UNITS[0]}"


def _machine_bytes(meminfo: Path) -> int:
    for line in meminfo.read_text().splitlines():
        name, _, value = line.partition(":")
        if name == "MemAvailable":
            return int(value.split()[0]) * 1024
    msg = f"{meminfo} has no MemAvailable"
    raise RuntimeError(msg)

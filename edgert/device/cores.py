"""Cores: which ones this process may use, their classes, and how a worker is pinned to some."""

from __future__ import annotations

import os
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from edgert.errors import ResourceError

CLASSES = ("p-cores", "e-cores")
# Two core types differ by more than the better and worse samples of one type do.
_LEAST_RATIO_OF_CLASSES = 1.2
_FORMS = 'Write `p-cores`, `e-cores`, `any`, a list such as "0-3,5", or [0, 2]'


class Resolution(NamedTuple):
    """The cores that a key ``cores:`` comes to.

    Attributes:
        cores: Sorted numbers, at least one.
        note: What the user should be told; empty where nothing is. It is the same text for every
            stage that has the same reason, so that it can be said once.
    """

    cores: tuple[int, ...]
    note: str = ""


def allowed() -> tuple[int, ...]:
    """Return the cores that the calling thread may run on.

    Before any pinning that is the mask the process was started with.
    """
    return tuple(sorted(os.sched_getaffinity(0)))


def classes(sys: Path = Path("/sys")) -> dict[str, tuple[int, ...]]:
    """Return the cores of each class, ``p-cores`` and ``e-cores``; empty where all are alike."""
    return _hybrid_classes(sys / "devices") or _classes_by_speed(sys / "devices/system/cpu")


def resolve(
    cores: str | tuple[int, ...] | None,
    allowed: tuple[int, ...],
    classes: Mapping[str, tuple[int, ...]],
    place: str = "cores",
) -> Resolution:
    """Turn a key ``cores:`` into numbers.

    Args:
        cores: The key's value; None stands for ``any``.
        allowed: The mask that the process started with.
        classes: What ``classes()`` found.
        place: Where the key stands, with which an error begins.

    Raises:
        ResourceError: It is malformed, or names cores outside the mask (which the kernel would
            silently widen).
    """
    if cores is None or cores == "any":
        return Resolution(allowed)
    if isinstance(cores, str) and cores in CLASSES:
        return _resolve_class(cores, allowed, classes)
    wanted = _parse_list(cores, place) if isinstance(cores, str) else _sorted(cores, place)
    outside = sorted(set(wanted) - set(allowed))
    if outside:
        raise ResourceError(
            place,
            f"of {as_list(wanted)} this process may not use {as_list(outside)}, "
            f"only {as_list(allowed)}",
            "Name some of these, or `any`, or start edgert with a wider mask (taskset, cpuset)",
        )
    return Resolution(wanted)


def pin(cores: tuple[int, ...]) -> None:
    """Keep the calling thread, and every thread it starts from now on, on ``cores``.

    Raises:
        ResourceError: The kernel did not take them, or took only some.
    """
    place = f"cores {as_list(cores)}"
    try:
        os.sched_setaffinity(0, cores)
    except OSError as error:
        raise ResourceError(
            place, f"cannot be pinned to: {error.strerror}", f"This process may use {_mask()}"
        ) from error
    if allowed() != tuple(sorted(set(cores))):
        raise ResourceError(
            place,
            f"only {_mask()} could be had",
            "Name cores that are online and in the cpuset of this process",
        )


def as_list(cores: tuple[int, ...] | list[int]) -> str:
    """Return ``0-3,5`` for (0, 1, 2, 3, 5)."""
    runs: list[list[int]] = []
    for core in sorted(set(cores)):
        if runs and core == runs[-1][1] + 1:
            runs[-1][1] = core
        else:
            runs.append([core, core])
    return ",".join(str(first) if first == last else f"{first}-{last}" for first, last in runs)


def parse_list(text: str) -> tuple[int, ...]:
    """Return (0, 1, 2, 3, 5) for ``0-3,5``, the form that the kernel's own files have.

    Raises:
        ValueError: It is something else.
    """
    numbers: set[int] = set()
    for part in text.split(","):
        first, dash, last = part.strip().partition("-")
        if not (first.isascii() and first.isdigit() and (not dash or last.isdigit())):
            raise ValueError(text)
        low, high = int(first), int(last or first)
        if low > high or high >= _MOST_CORES:
            raise ValueError(text)
        numbers.update(range(low, high + 1))
    return tuple(sorted(numbers))


_MOST_CORES = 8192  # the largest NR_CPUS that Linux is built with


def _mask() -> str:
    return as_list(allowed())


def _parse_list(text: str, place: str) -> tuple[int, ...]:
    try:
        return parse_list(text)
    except ValueError:
        raise ResourceError(place, f"{text!r} does not name cores", _FORMS) from None


def _sorted(cores: tuple[int, ...], place: str) -> tuple[int, ...]:
    if not cores:
        raise ResourceError(place, "names no core", _FORMS)
    return tuple(sorted(set(cores)))


def _resolve_class(
    name: str, allowed: tuple[int, ...], classes: Mapping[str, tuple[int, ...]]
) -> Resolution:
    if name not in classes:
        return Resolution(allowed, f"this machine has no {name}: `{name}` means any core here")
    usable = tuple(core for core in classes[name] if core in allowed)
    if not usable:
        note = (
            f"this process may use no {name}: `{name}` means any of its cores ({as_list(allowed)})"
        )
        return Resolution(allowed, note)
    return Resolution(usable)


def _hybrid_classes(devices: Path) -> dict[str, tuple[int, ...]]:
    """Read what the kernel says of Intel's hybrid processors."""
    files = {"p-cores": devices / "cpu_core/cpus", "e-cores": devices / "cpu_atom/cpus"}
    if not all(file.is_file() for file in files.values()):
        return {}
    texts = {name: file.read_text().strip() for name, file in files.items()}
    # A type of which every core is offline has an empty file.
    return {name: parse_list(text) for name, text in texts.items()} if all(texts.values()) else {}


def _classes_by_speed(cpu: Path) -> dict[str, tuple[int, ...]]:
    """Split the cores at the widest gap of capacity (ARM), else of highest frequency."""
    for file in ("cpu_capacity", "cpufreq/cpuinfo_max_freq"):
        speeds = {
            int(folder.name[3:]): int((folder / file).read_text())
            for folder in cpu.glob("cpu[0-9]*")
            if (folder / file).is_file()
        }
        found = _split(speeds)
        if found:
            return found
    return {}


def _split(speeds: Mapping[int, int]) -> dict[str, tuple[int, ...]]:
    levels = sorted(set(speeds.values()))
    gaps = [(high / low, high) for low, high in pairwise(levels) if low]
    ratio, threshold = max(gaps, default=(1.0, 0))
    if ratio < _LEAST_RATIO_OF_CLASSES:
        return {}
    return {
        "p-cores": tuple(sorted(core for core, speed in speeds.items() if speed >= threshold)),
        "e-cores": tuple(sorted(core for core, speed in speeds.items() if speed < threshold)),
    }

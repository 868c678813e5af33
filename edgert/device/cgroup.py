"""Limits of the control groups this process is in: version 2, version 1, and hosts with both.

A limit of any ancestor holds too, so the smallest of the whole branch is told. Where the files
stand comes from /proc/self/mountinfo: in a container the path in /proc/self/cgroup may be one of
the host, of which only the container's own part is mounted.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

# Version 1 writes "no limit" as the largest page count there is, in bytes.
_UNLIMITED_BYTES = 1 << 60


class MemoryLimit(NamedTuple):
    """A memory limit of a group, and how much of it is taken.

    Attributes:
        group: Path of the group below its mount point; ``/`` for the mount point itself.
        limit_bytes: The limit.
        used_bytes: What the group uses; files that the kernel can let go of at once not counted.
    """

    group: str
    limit_bytes: int
    used_bytes: int

    @property
    def free_bytes(self) -> int:
        """How much the group may still take."""
        return max(0, self.limit_bytes - self.used_bytes)


class HeldBack(NamedTuple):
    """How often a quota was used up, and for how long cores waited, all of them added up."""

    periods: int
    seconds: float


class _Mount(NamedTuple):
    """Where one hierarchy is mounted; ``controllers`` is empty for version 2."""

    point: Path
    root: str
    controllers: frozenset[str]


def cpu_quota(root: Path = Path("/")) -> float | None:
    """Return how many cores' worth of time this process may use; None where nothing limits it."""
    quotas = [*_quotas_v2(root), *_quotas_v1(root)]
    return min(quotas, default=None)


def cpu_throttling(root: Path = Path("/")) -> HeldBack:
    """Return how the quotas of this process's groups have held it back since they were made."""
    periods, seconds = 0, 0.0
    for controller, key, in_a_second in (
        ("", "throttled_usec", 1e6),
        ("cpu", "throttled_time", 1e9),
    ):
        for _, folder in _branch(root, controller):
            found = dict(line.split(" ", 1) for line in _read(folder / "cpu.stat").splitlines())
            periods += int(found.get("nr_throttled", 0))
            seconds += int(found.get(key, 0)) / in_a_second
    return HeldBack(periods, seconds)


def memory_limit(root: Path = Path("/")) -> MemoryLimit | None:
    """Return the limit that leaves this process the least; None where nothing limits it."""
    limits = [
        *_memory_limits(root, "", "memory.max", "memory.current", "inactive_file"),
        *_memory_limits(
            root,
            "memory",
            "memory.limit_in_bytes",
            "memory.usage_in_bytes",
            "total_inactive_file",
        ),
    ]
    return min(limits, key=lambda limit: limit.free_bytes, default=None)


def oom_kills(root: Path = Path("/")) -> int:
    """Return how many processes the kernel has killed in this process's group for want of memory.

    Deaths in groups below count in version 2; a kernel that counts none says 0.
    """
    files = [("", "memory.events"), ("memory", "memory.oom_control")]
    counts = [0]
    for controller, name in files:
        for _, folder in _branch(root, controller):
            lines = (line.split() for line in _read(folder / name).splitlines())
            counts += [int(line[1]) for line in lines if line[:1] == ["oom_kill"]]
            break
    return max(counts)


def _quotas_v2(root: Path) -> Iterator[float]:
    for _, folder in _branch(root, ""):
        quota, _, period = _read(folder / "cpu.max").partition(" ")
        if quota not in {"", "max"}:
            yield int(quota) / int(period)


def _quotas_v1(root: Path) -> Iterator[float]:
    for _, folder in _branch(root, "cpu"):
        quota = int(_read(folder / "cpu.cfs_quota_us") or -1)
        if quota > 0:
            yield quota / int(_read(folder / "cpu.cfs_period_us"))


def _memory_limits(
    root: Path, controller: str, limit_file: str, usage_file: str, reclaimable: str
) -> Iterator[MemoryLimit]:
    for group, folder in _branch(root, controller):
        limit = _read(folder / limit_file)
        if limit in {"", "max"} or int(limit) >= _UNLIMITED_BYTES:
            continue
        statistics = dict(line.split(" ", 1) for line in _read(folder / "memory.stat").splitlines())
        used = int(_read(folder / usage_file) or 0) - int(statistics.get(reclaimable, 0))
        yield MemoryLimit(group, int(limit), max(0, used))


def _branch(root: Path, controller: str) -> Iterator[tuple[str, Path]]:
    """Go from this process's group of a controller ("" is version 2) up to its mount point."""
    mount = _find_mount(root, controller)
    path = _group_path(root, controller)
    if mount is None or path is None:
        return
    below = path.removeprefix(mount.root.rstrip("/")) if path.startswith(mount.root) else "/"
    parts = [part for part in below.split("/") if part not in {"", ".."}]
    for depth in range(len(parts), -1, -1):
        yield "/" + "/".join(parts[:depth]), mount.point.joinpath(*parts[:depth])


def _find_mount(root: Path, controller: str) -> _Mount | None:
    for line in _read(root / "proc/self/mountinfo").splitlines():
        mount = _parse_mount(root, line)
        if mount and (controller in mount.controllers if controller else not mount.controllers):
            return mount
    return None


def _parse_mount(root: Path, line: str) -> _Mount | None:
    """Read a line ``31 23 0:28 ROOT POINT options - TYPE source super-options``."""
    before, _, after = line.partition(" - ")
    fields, (kind, _, *options) = before.split(" "), after.split(" ")
    if kind not in {"cgroup", "cgroup2"}:
        return None
    controllers = frozenset(options[0].split(",")) if kind == "cgroup" else frozenset[str]()
    return _Mount(root / fields[4].lstrip("/"), fields[3], controllers)


def _group_path(root: Path, controller: str) -> str | None:
    """Read the lines ``4:memory:/path`` (version 1) and ``0::/path`` (version 2)."""
    for line in _read(root / "proc/self/cgroup").splitlines():
        _, controllers, path = line.split(":", 2)
        if controller in controllers.split(","):
            return path
    return None


def _read(file: Path) -> str:
    """Return a file's text; a group need not have every file, and may vanish while it is read."""
    try:
        return file.read_text().strip()
    except OSError:
        return ""

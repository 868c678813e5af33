"""A control group for a pipeline, whose CPU time can be limited: version 2 or 1, where root."""

from __future__ import annotations

import contextlib
import os
import time
from pathlib import Path

EMPTY_WITHIN_S = 3.0
PERIOD_US = 100_000
WEIGHT = 4  # of a single process: a dozen are in it


class Quota:
    """A group of its own for a process and what that starts.

    Args:
        name: Name of the group.
        pid: The first process in it.

    Raises:
        OSError: There cannot be one: not root, or no controller for the CPU.
    """

    def __init__(self, name: str, pid: int) -> None:
        root = Path("/sys/fs/cgroup")
        self._is_v2 = (root / "cgroup.controllers").exists()
        self._folder = root / name if self._is_v2 else root / "cpu" / name
        self._folder.mkdir()
        try:
            weight = ("cpu.weight", 100) if self._is_v2 else ("cpu.shares", 1024)
            self._write(weight[0], f"{weight[1] * WEIGHT}")
            self._write("cgroup.procs", str(pid))
        except OSError:
            self.close()
            raise

    def limit(self, cores: float) -> None:
        """Let all of it together have so many cores."""
        quota_us = max(1000, round(cores * PERIOD_US))
        if self._is_v2:
            self._write("cpu.max", f"{quota_us} {PERIOD_US}")
        else:
            self._write("cpu.cfs_quota_us", str(quota_us))

    def lift(self) -> None:
        """Let it have whatever there is."""
        if self._is_v2:
            self._write("cpu.max", f"max {PERIOD_US}")
        else:
            self._write("cpu.cfs_quota_us", "-1")

    def close(self) -> None:
        """Remove the group as soon as nobody is in it, but wait no longer than a moment."""
        deadline_s = time.monotonic() + EMPTY_WITHIN_S
        while self._folder.exists() and time.monotonic() < deadline_s:
            with contextlib.suppress(OSError):
                self._folder.rmdir()
            time.sleep(0.05)

    def _write(self, file: str, text: str) -> None:
        (self._folder / file).write_text(text, encoding="ascii")


def quotas(pids: dict[str, int]) -> dict[str, Quota]:
    """Return a group for each process by its name; none where there cannot be any."""
    made: dict[str, Quota] = {}
    with contextlib.suppress(OSError):
        for name, pid in pids.items():
            made[name] = Quota(f"edgert-soak-{os.getpid()}-{name}", pid)
    return made

"""How many threads a library may start: by cores, mask and quota, never by the machine's size."""

from __future__ import annotations

import math
from pathlib import Path

from edgert.device import cgroup
from edgert.device.cores import allowed


def thread_count(cores: tuple[int, ...], root: Path = Path("/")) -> int:
    """Return how many threads a stage on ``cores`` may use: at least 1.

    Args:
        cores: The stage's cores.
        root: Where /proc and /sys are found.
    """
    quota = cgroup.cpu_quota(root)
    by_quota = len(cores) if quota is None else math.ceil(quota)
    return max(1, min(len(cores), len(allowed()), by_quota))

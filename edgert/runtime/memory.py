"""How much memory the processes of a run take, shared pages counted once (PSS)."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from pathlib import Path


def pss_mb(pid: int) -> float:
    """Return the proportional set size of a process in MB (10**6 bytes); 0 if it is gone."""
    with contextlib.suppress(OSError):
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="ascii").splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) * 1024 / 1e6
    return 0.0


def pss_by_process(names: Iterable[tuple[str, int]]) -> dict[str, float]:
    """Return the PSS of each named process in MB."""
    return {name: round(pss_mb(pid), 1) for name, pid in names}

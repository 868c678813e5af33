"""Which cores each worker runs on.

Where the file says nothing, a worker floats over the cores the process was started with. Measured
on two cores, floating was never slower than a split by stage, and a badly balanced split cost a
fifth of the frames: pinning is for who knows the machine.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from edgert.device import cores as device_cores
from edgert.pipeline.spec import StageSpec


class Placement(msgspec.Struct, frozen=True):
    """Cores of a worker, and why."""

    cores: tuple[int, ...]
    why: str


def place(stages: Sequence[tuple[str, StageSpec]]) -> Placement:
    """Return where the worker of ``stages`` (name, spec) runs.

    Raises:
        ResourceError: A core is asked for that this process may not use.
    """
    allowed = device_cores.allowed()
    for name, spec in stages:
        if spec.cores is None:
            continue
        found = device_cores.resolve(
            spec.cores, allowed, device_cores.classes(), place=f"stage '{name}', key 'cores'"
        )
        note = f"; {found.note}" if found.note else ""
        return Placement(found.cores, f"cores {spec.cores} of stage '{name}'{note}")
    return Placement(allowed, f"floats over {device_cores.as_list(allowed)} (no cores: given)")

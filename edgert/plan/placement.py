"""Which cores each worker runs on.

Where the file says nothing, a worker floats over the cores the process was started with. Measured
on two cores, floating was never slower than a split by stage, and a badly balanced split cost a
fifth of the frames: pinning is for who knows the machine.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from edgert.device import cores as device_cores
from edgert.device import limits
from edgert.pipeline.spec import StageSpec
from edgert.profiles.apply import NOTHING_KNOWN, Known


class Placement(msgspec.Struct, frozen=True):
    """Cores of a worker, why these, and how many threads its libraries may have."""

    cores: tuple[int, ...]
    why: str
    threads: int


def place(stages: Sequence[tuple[str, StageSpec]], known: Known = NOTHING_KNOWN) -> Placement:
    """Return where the worker of ``stages`` (name, spec) runs.

    Args:
        stages: Its stages.
        known: What a device profile says.

    Raises:
        ResourceError: A core is asked for that this process may not use.
    """
    allowed = device_cores.allowed()
    for name, spec in stages:
        if spec.cores is None:
            continue
        classes = device_cores.classes() if known.classes is None else known.classes
        found = device_cores.resolve(
            spec.cores, allowed, classes, place=f"stage '{name}', key 'cores'"
        )
        notes = [found.note, _said_by(spec, known)]
        note = "".join(f"; {said}" for said in notes if said)
        why = f"cores {spec.cores} of stage '{name}'{note}"
        return Placement(found.cores, why, limits.thread_count(found.cores))
    why = f"floats over {device_cores.as_list(allowed)} (no cores: given)"
    threads = limits.thread_count(allowed)
    return Placement(allowed, why, min(threads, known.threads or threads))


def _said_by(spec: StageSpec, known: Known) -> str:
    is_class = spec.cores in device_cores.CLASSES
    return f"its cores by {known.classes_by}" if is_class and known.classes_by else ""

"""Compiles a model for every batch size, proves each, and tells what each costs."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from edgert.backends.base import Session
from edgert.backends.once import infer_once, zeros_for
from edgert.errors import ModelError
from edgert.stages.batch_plan import MEND, BatchPlan, cannot, shapes_for
from edgert.stages.batch_proof import flaws
from edgert.stages.batch_session import BatchSession

Compile = Callable[[Mapping[str, list[int]]], Session]


class Cost(msgspec.Struct, frozen=True):
    """What one size costs while it is opened.

    Attributes:
        memory_mb: Growth of the process (10**6 bytes); 0 where the runtime had it to spare.
        open_s: Seconds to compile and warm up.
    """

    memory_mb: float
    open_s: float


class Opened(msgspec.Struct):
    """An opened model, and what its sizes cost."""

    session: BatchSession
    costs: dict[str, Cost]


def open_batches(
    compile_for: Compile, single: Session, batch: BatchPlan, model: str, place: str
) -> Opened:
    """Compile ``model`` for the sizes of ``batch`` beside ``single``, which is for one frame.

    Raises:
        ModelError: The model cannot be batched.
        DeviceError: The device refuses one of the sizes.
    """
    by_size: dict[int, Session] = {}
    costs: dict[str, Cost] = {}
    try:
        for size in batch.sizes:
            if size == 1:
                by_size[1] = single
                continue
            began_s, before_mb = time.monotonic(), _resident_mb()
            by_size[size] = _proved(compile_for, single, size, model, place)
            costs[str(size)] = Cost(
                round(max(0.0, _resident_mb() - before_mb), 1), round(time.monotonic() - began_s, 3)
            )
    except BaseException:
        for size in by_size.keys() - {1}:  # ``single`` is the caller's until all went well
            by_size[size].close()
        raise
    opened = Opened(BatchSession(single, by_size), costs)
    if 1 not in by_size:
        single.close()
    return opened


def tell(costs: Mapping[str, Cost], log: logging.Logger, place: str) -> dict[str, Any]:
    """Log what each size costs, and return it for the summary."""
    for size, cost in costs.items():
        log.info(
            "%s: batch of %s: %.1f MB, %.2f s to open", place, size, cost.memory_mb, cost.open_s
        )
    found: dict[str, Any] = msgspec.to_builtins(costs)
    return found


def _proved(compile_for: Compile, single: Session, size: int, model: str, place: str) -> Session:
    session = compile_for(shapes_for(single.inputs, size))
    try:
        found = flaws(single, session, size)
        if found:
            raise ModelError(f"{place}, batch", f"{cannot(model)}: {found[0]}", MEND)
        for _ in range(session.requests):
            infer_once(session, zeros_for(session.inputs))
    except BaseException:
        session.close()
        raise
    return session


def _resident_mb() -> float:
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * 4096 / 1e6

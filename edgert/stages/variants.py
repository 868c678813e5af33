"""A model compiled several times, for several sizes: what each costs, none left when one fails."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from edgert.backends.base import Session
from edgert.backends.once import infer_once, zeros_for

Compile = Callable[[Mapping[str, list[int]]], Session]
_MB = 1e6


class Cost(msgspec.Struct, frozen=True):
    """What one variant costs.

    Attributes:
        memory_mb: Growth of the process (10**6 bytes); 0 where the runtime had it to spare.
        open_s: Seconds to compile, prove and warm up.
        infer_ms: Milliseconds of one inference alone, warmed up, on zeros.
    """

    memory_mb: float
    open_s: float
    infer_ms: float


class Variants:
    """Sessions of one model beside its first one, by what sets them apart."""

    def __init__(self) -> None:
        self.sessions: list[Session] = []
        self.costs: dict[str, Cost] = {}

    def add(self, what: str, make: Callable[[], Session]) -> Session:
        """Make one more and note what it costs; when that fails, all of them are closed."""
        began_s, before_mb = time.monotonic(), _resident_mb()
        try:
            session = make()
            open_s = time.monotonic() - began_s
            infer_s = _time_one(session)
        except BaseException:
            for each in self.sessions:
                each.close()
            raise
        self.sessions.append(session)
        grown_mb = max(0.0, _resident_mb() - before_mb)
        self.costs[what] = Cost(round(grown_mb, 1), round(open_s, 3), round(infer_s * 1e3, 2))
        return session


def warmed_up(session: Session, prove: Callable[[Session], None]) -> Session:
    """Return a session that was proved and has made an inference for each request.

    Raises:
        Exception: What ``prove`` or an inference raised; the session is closed.
    """
    try:
        prove(session)
        for _ in range(session.requests):
            infer_once(session, zeros_for(session.inputs))
    except BaseException:
        session.close()
        raise
    return session


def tell(costs: Mapping[str, Cost], log: logging.Logger, place: str) -> dict[str, Any]:
    """Log what each variant costs, and return it for the summary."""
    for what, cost in costs.items():
        log.info(
            "%s: %s: %.1f MB, %.2f s to open, %.1f ms an inference",
            *(place, what, cost.memory_mb, cost.open_s, cost.infer_ms),
        )
    found: dict[str, Any] = msgspec.to_builtins(costs)
    return found


def _time_one(session: Session) -> float:
    zeros = zeros_for(session.inputs)
    began_s = time.monotonic()
    infer_once(session, zeros)
    return time.monotonic() - began_s


def _resident_mb() -> float:
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * 4096 / _MB

"""When a camera that is gone is tried again: a plain function of how often it has failed."""

from __future__ import annotations

from typing import Any

from edgert.options import Options, option

LEAST_SHARE = 0.5  # jitter: cameras behind one switch come back together, and must not all knock


class Reconnect(Options):
    """When a camera that is gone is tried again."""

    delay_ms: int = option(
        default=500,
        ge=10,
        le=86_400_000,
        description="Wait before the first try; doubled each time.",
    )
    max_delay_ms: int = option(
        default=4000, ge=10, le=86_400_000, description="The wait never grows beyond this."
    )
    attempts: int | None = option(
        default=None,
        ge=0,
        le=1_000_000,
        description="Tries in a row before the source is given up; without end where it is not "
        "given. With 0 (or `reconnect: off`) a stream that ends is over.",
    )

    def next_delay_s(self, failures: int, chance: float, short: int = 0) -> float | None:
        """Return the seconds to wait before the next try; None means give up.

        Args:
            failures: How often in a row it has failed, from 1.
            chance: From 0 up to 1: where between half the wait and the whole one to be.
            short: How often in a row it was there for a moment at most.
        """
        if self.attempts is not None and failures > self.attempts:
            return None
        doublings = min(max(failures, short) - 1, 30)
        whole_ms = min(self.max_delay_ms, self.delay_ms << doublings)
        return whole_ms * (LEAST_SHARE + (1 - LEAST_SHARE) * chance) / 1e3


def or_off(value: Any) -> Any:
    """Return what ``reconnect: off`` stands for, in YAML false; anything else as it is."""
    return {"attempts": 0} if value is False or value == "off" else value

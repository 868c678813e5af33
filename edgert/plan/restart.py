"""When a worker that died is started again: a pure function, time and chance handed in."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import msgspec

_DOUBLINGS_AT_MOST = 30
_LONGEST_ABSENCE_S = 3600.0


class RestartPolicy(msgspec.Struct, frozen=True):
    """How often, and after how long, a worker is started again.

    Attributes:
        policy: ``on-failure``, or ``never``: then the run ends with the worker.
        delay_ms: Wait before the first restart; doubled with each further one in the window.
        max_delay_ms: Longest wait, before the jitter.
        jitter: Share of the wait that is added or taken off by chance.
        max_restarts: Restarts allowed within the window.
        window_s: The window.
        hang_s: Seconds without a sign of life after which a worker is killed.
    """

    policy: Literal["on-failure", "never"] = "on-failure"
    delay_ms: float = 100
    max_delay_ms: float = 5000
    jitter: float = 0.2
    max_restarts: int = 5
    window_s: float = 60
    hang_s: float = 10

    def next_delay_s(
        self, restarts_s: Sequence[float], now_s: float, chance: float
    ) -> float | None:
        """Return how long to wait before the next start; None means give up.

        Args:
            restarts_s: When the worker was started again before.
            now_s: When it died.
            chance: From 0 to 1, what the jitter is taken from.
        """
        recent = sum(1 for at_s in restarts_s if at_s > now_s - self.window_s)
        if self.policy == "never" or recent >= self.max_restarts:
            return None
        doubled_ms = self.delay_ms * float(2 ** min(recent, _DOUBLINGS_AT_MOST))
        factor = 1 + self.jitter * (2 * chance - 1)
        return min(self.max_delay_ms, doubled_ms) * factor / 1e3

    def absence_s(self, absences: int) -> float:
        """Return how long a worker whose budget is used up stays away while others do its work.

        Args:
            absences: How often it was away before without having been well in between.
        """
        doubled_s = self.window_s * float(2 ** min(absences, _DOUBLINGS_AT_MOST))
        return min(max(doubled_s, self.max_delay_ms / 1e3), max(self.window_s, _LONGEST_ABSENCE_S))

    @property
    def budget(self) -> str:
        """The budget in words."""
        return f"{self.max_restarts} within {self.window_s:g} s"

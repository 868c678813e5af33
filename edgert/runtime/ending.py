"""When a run is to end by itself, and when what still runs after that is killed."""

from __future__ import annotations

import time

from edgert.runtime.order import RunOptions

_AFTER_A_KILL_S = 1.0


class Ending:
    """Keeps the times by which a run has to end.

    Args:
        options: How it is run.
    """

    def __init__(self, options: RunOptions) -> None:
        self._duration_s = options.duration_s
        self._timeout_s = options.stop_timeout_s
        self._by_s: float | None = None

    @property
    def has_begun(self) -> bool:
        """Whether the streams were told to end."""
        return self._by_s is not None

    def begin(self) -> None:
        """Note that the streams were told to end."""
        self._by_s = time.monotonic() + self._timeout_s

    def is_due(self, started_s: float) -> bool:
        """Whether a run that was started then has lasted as long as it should."""
        return bool(
            self._duration_s and started_s and time.monotonic() >= started_s + self._duration_s
        )

    def is_late(self) -> bool:
        """Whether what still runs is to be killed."""
        return self._by_s is not None and time.monotonic() >= self._by_s

    def killed(self) -> None:
        """Note that what ran was killed: a kill has a time limit, too."""
        self._by_s = time.monotonic() + _AFTER_A_KILL_S

    def within(self, timeout_s: float, started_s: float) -> float:
        """Return how long a poll may last before the run is to end, or is late to."""
        if self._by_s is not None:
            by_s = self._by_s
        elif self._duration_s and started_s:
            by_s = started_s + self._duration_s
        else:
            return timeout_s
        return min(timeout_s, max(0.0, by_s - time.monotonic()))

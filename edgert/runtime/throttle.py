"""Tells when the cores are held back: in the log when it begins, in the summary at the end."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import Any

from edgert.device import throttling
from edgert.device.throttling import Throttling
from edgert.wording import counted

log = logging.getLogger("edgert.supervisor")

_LOOK_EVERY_S = 5.0
_SAY_AGAIN_AFTER_S = 300.0


class ThrottleWatch:
    """Looks every few seconds.

    Args:
        read: Where counters come from.
    """

    def __init__(self, read: Callable[[], Throttling] = throttling.read) -> None:
        self._read = read
        self._first = self._last = read()
        self._cooled = set(self._first.cooled)
        self._capped = dict(self._first.capped)
        self._look_at_s = time.monotonic() + _LOOK_EVERY_S
        self._said_at_s: dict[str, float] = {}

    def look_when_due(self) -> None:
        """Look, if it is time, and say what has begun."""
        now_s = time.monotonic()
        if now_s >= self._look_at_s:
            self._look_at_s = now_s + _LOOK_EVERY_S
            self.look(now_s)

    def look(self, now_s: float) -> None:
        """Look now, and say what has begun since the last look."""
        before, self._last = self._last, self._read()
        now = self._last
        self._cooled |= set(now.cooled)
        self._capped |= now.capped
        for what, said in _said(before, now).items():
            if now_s >= self._said_at_s.get(what, now_s):
                self._said_at_s[what] = now_s + _SAY_AGAIN_AFTER_S
                log.warning("the CPU is throttled: %s", said)

    def totals(self) -> dict[str, Any]:
        """Return what happened since the start; empty where nothing did."""
        self.look(time.monotonic())
        first, last = self._first, self._last
        found = {
            "quota_periods": last.quota_periods - first.quota_periods,
            "quota_s": round(last.quota_s - first.quota_s, 3),
            "hot_events": last.hot_events - first.hot_events,
            "cooled": sorted(self._cooled),
            "capped": {str(core): share for core, share in self._capped.items()},
        }
        return {what: value for what, value in found.items() if value}


def _said(before: Throttling, now: Throttling) -> dict[str, str]:
    said = {}
    if now.quota_periods > before.quota_periods:
        said["quota"] = (
            f"its control group's quota held cores back for {now.quota_s - before.quota_s:.1f} s "
            f"in {counted(now.quota_periods - before.quota_periods, 'period')} (cpu.max, CPUQuota=)"
        )
    if now.hot_events > before.hot_events:
        said["hot"] = f"cores were too hot {counted(now.hot_events - before.hot_events, 'time')}"
    if now.cooled:
        said["cooled"] = f"slowed down because of heat: {', '.join(now.cooled)}"
    if now.capped:
        share = min(now.capped.values())
        said["capped"] = f"at most {share:.0%} of its clock for {counted(len(now.capped), 'core')}"
    return said

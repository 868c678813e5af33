"""Times of a live stream: they only grow within an epoch, and a restart begins another."""

from __future__ import annotations

from edgert.stages.source.timeline import Timeline

RESTART_NS = 1_000_000_000  # time that goes back by more has restarted; by less it is jitter


class Epochs:
    """Gives each frame its epoch and its time from the start of that epoch.

    Attributes:
        count: Epochs that have begun.
    """

    def __init__(self) -> None:
        self.count = 0
        self._is_new = True
        self._timeline = Timeline()
        self._began_ns = 0
        self._zero_ns: int | None = None  # what the container says at the start of the epoch
        self._last_ns = 0

    def restart(self) -> None:
        """Begin an epoch with the next frame: the source was connected (again)."""
        self._is_new = True

    def stamp(self, pts_ns: int | None, captured_ns: int) -> tuple[int, int]:
        """Return the epoch, from 0, and the time in it of a frame.

        Args:
            pts_ns: What the container says; None where it does not: then arrival counts.
            captured_ns: When the frame arrived.
        """
        if self._is_new or (pts_ns is not None and self._went_back(pts_ns)):
            self._begin(captured_ns)
        since_ns = captured_ns - self._began_ns
        if pts_ns is not None:
            if self._zero_ns is None:
                self._zero_ns = pts_ns - since_ns
            since_ns = pts_ns - self._zero_ns
            self._last_ns = pts_ns
        return self.count - 1, self._timeline.stamp(max(0, since_ns))

    def _went_back(self, pts_ns: int) -> bool:
        return self._zero_ns is not None and pts_ns < self._last_ns - RESTART_NS

    def _begin(self, captured_ns: int) -> None:
        self.count += 1
        self._is_new = False
        self._timeline = Timeline()
        self._began_ns = captured_ns
        self._zero_ns = None

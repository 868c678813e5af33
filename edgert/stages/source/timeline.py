"""Time stamps of a stream that only ever grow, whatever its container says."""

from __future__ import annotations

DEFAULT_STEP_NS = 40_000_000


class Timeline:
    """Makes presentation times out of a container's: in ns from the start, each above the last.

    Attributes:
        derived: Frames without a time stamp, placed one step after the one before.
        restamped: Frames whose time did not grow, placed 1 ns after the one before.
    """

    def __init__(self, step_ns: int = DEFAULT_STEP_NS) -> None:
        self.derived = 0
        self.restamped = 0
        self._step_ns = step_ns
        self._base_ns = 0
        self._last_ns = -1
        self._next_ns = 0

    def stamp(self, pts_ns: int | None, duration_ns: int = 0) -> int:
        """Return the time of the next frame.

        Args:
            pts_ns: What the container says, from the start of the stream; None where it does not.
            duration_ns: How long the frame is shown; 0 where it is not known.
        """
        if pts_ns is None:
            self.derived += 1
            now_ns = self._next_ns
        else:
            now_ns = self._base_ns + pts_ns
        if now_ns <= self._last_ns:
            self.restamped += 1
            now_ns = self._last_ns + 1
        self._last_ns = now_ns
        self._next_ns = now_ns + (duration_ns or self._step_ns)
        return now_ns

    def start_again(self) -> None:
        """Let the container's times begin anew after the last frame: the file is looped."""
        self._base_ns = self._next_ns

    def skip(self, plays: int, last_ns: int, duration_ns: int) -> None:
        """Let whole plays have passed: as if each had been stamped to its last frame.

        Args:
            plays: How many.
            last_ns: When the last frame of each is, from its start.
            duration_ns: How long that is shown; 0 where it is not known.
        """
        self._base_ns = self._next_ns = plays * (last_ns + (duration_ns or self._step_ns))

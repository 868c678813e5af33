"""Counts frames and the CPU time of this process between a warm-up and an end."""

from __future__ import annotations

import gc
import time

import msgspec

WARM_UP_FRAMES = 16
WARM_UP_S = 0.2
LEAST_FRAMES = 16


class Alone(msgspec.Struct, frozen=True):
    """What was measured of one stage alone, or of the stages of one worker.

    Attributes:
        cpu_ms: CPU time of its process for a frame, in milliseconds; all threads.
        fps: Frames/s.
        frames: Frames that were measured.
    """

    cpu_ms: float
    fps: float
    frames: int

    def and_then(self, later: Alone) -> Alone:
        """Return the mean of what was measured twice."""
        return Alone(
            cpu_ms=(self.cpu_ms + later.cpu_ms) / 2,
            fps=(self.fps + later.fps) / 2,
            frames=self.frames + later.frames,
        )


class Meter:
    """Says when there is enough.

    Args:
        seconds: How long is measured; some frames at least, however long they take.

    Attributes:
        wants_more: Whether there is not enough yet.
    """

    def __init__(self, seconds: float) -> None:
        self.wants_more = True
        self._seconds = seconds
        self._frames = 0
        self._warm_from_s = time.monotonic()
        self._is_warm = False
        self._wall_s = self._cpu_s = 0.0
        self._mark_wall_s = self._mark_cpu_s = 0.0

    def count(self) -> None:
        """Count a frame that has ended."""
        self._frames += 1
        now_s = time.monotonic()
        if not self._is_warm:
            if self._frames >= WARM_UP_FRAMES and now_s - self._warm_from_s >= WARM_UP_S:
                self._begin()
        elif self._frames >= LEAST_FRAMES:
            wall_s = self._wall_s + now_s - self._mark_wall_s
            if wall_s >= self._seconds:
                self.wants_more = False
                self.pause()

    def pause(self) -> None:
        """Stop the clocks: what follows is no frame's."""
        self._cpu_s += time.process_time() - self._mark_cpu_s
        self._wall_s += time.monotonic() - self._mark_wall_s

    def go_on(self) -> None:
        """Start the clocks again."""
        self._mark_wall_s = time.monotonic()
        self._mark_cpu_s = time.process_time()

    def result(self) -> Alone:
        """Return what was measured; once no more is wanted."""
        return Alone(
            cpu_ms=self._cpu_s * 1e3 / self._frames,
            fps=self._frames / self._wall_s,
            frames=self._frames,
        )

    def _begin(self) -> None:
        """End the warm-up; as in a worker, no garbage is collected inside a frame."""
        gc.collect()
        gc.freeze()
        gc.disable()
        self._is_warm = True
        self._frames = 0
        self._wall_s = self._cpu_s = 0.0
        self.go_on()

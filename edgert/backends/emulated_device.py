"""The emulated device: threads that hold results back until the device would have them."""

from __future__ import annotations

import ctypes
import queue
import threading
import time
from collections.abc import Sequence
from itertools import count

import msgspec

from edgert.backends.base import Done, Targets
from edgert.backends.emulated_faults import Step
from edgert.backends.emulated_lanes import Lanes
from edgert.backends.emulated_timing import Duration
from edgert.errors import RunError

PR_SET_TIMERSLACK = 29
# Number of the inference, when it was asked for, where its results are, and who waits for it.
_Job = tuple[int, float, Targets, Done]


class Behaviour(msgspec.Struct, frozen=True):
    """What a device does with an inference, prepared.

    Attributes:
        lanes: Whose turn it is.
        duration: How long it takes.
        changes: What is done to its outputs at its end.
        steps: What then happens instead of a result.
    """

    lanes: Lanes
    duration: Duration
    changes: Sequence[Step] = ()
    steps: Sequence[Step] = ()


class Device:
    """Ends inferences whose results are there already when the device would have them.

    Args:
        place: ``emulated:NPU``.
        behaviour: What it does.
        requests: Inferences that may be in flight.
    """

    def __init__(self, place: str, behaviour: Behaviour, requests: int) -> None:
        self._place = place
        self._duration = behaviour.duration
        self._end = _in_order([*behaviour.changes, *behaviour.steps])
        self._numbers = count()
        self._jobs: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        lanes = behaviour.lanes
        self._threads = [self._thread(lanes) for _ in range(min(lanes.count, requests))]

    def finish(self, began_s: float, outputs: Targets, done: Done) -> None:
        """Call ``done`` when an inference that was asked for at ``began_s`` would have ended."""
        self._jobs.put((next(self._numbers), began_s, outputs, done))

    def close(self) -> None:
        """Wait for what is in flight and give the lanes back."""
        for _ in self._threads:
            self._jobs.put(None)
        for thread in self._threads:
            thread.join()

    def _thread(self, lanes: Lanes) -> threading.Thread:
        # Only the threads hold the lanes: the device is given back when they have ended.
        thread = threading.Thread(
            target=self._work, args=(lanes,), name="emulated-device", daemon=True
        )
        thread.start()
        return thread

    def _work(self, lanes: Lanes) -> None:
        # The kernel may wake a sleeper 50 us late to save power: not this thread.
        ctypes.CDLL(None).prctl(PR_SET_TIMERSLACK, 1, 0, 0, 0)
        take, reserve, duration, end = self._jobs.get, lanes.reserve, self._duration, self._end
        while (job := take()) is not None:
            number, began_s, outputs, done = job
            left_s = reserve(began_s, duration(number)) - time.monotonic()
            if left_s > 0:
                time.sleep(left_s)
            try:
                error = end(number, outputs)
            except OSError as failed:  # of the device's folder
                error = RunError(self._place, f"an inference failed: {failed}")
            # The caller has its memory back from here on.
            del job, outputs
            done(error)
            del done


def _in_order(steps: Sequence[Step]) -> Step:
    """Make one step of several, up to the first that fails."""

    def end(number: int, outputs: Targets) -> RunError | None:
        for step in steps:
            error = step(number, outputs)
            if error is not None:
                return error
        return None

    return end if steps else lambda _number, _outputs: None

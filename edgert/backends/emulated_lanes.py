"""Whose turn it is on an emulated device: each of its lanes does one inference at a time.

An inference reserves the lane that is free first, and ends when its time is over: ends are absolute
times, so that late wake-ups do not add up, and a lane that is kept busy does exactly
1 / latency inferences a second. All sessions of a process share the device; those of several
processes do where they name the same folder, in which one file has the end of each lane:

    FOLDER/emulated-NPU-BOOT.lanes   | end of lane 0, f64, monotonic seconds | lane 1 ...
"""

from __future__ import annotations

import fcntl
import mmap
import os
import threading
import weakref
from heapq import heapreplace
from pathlib import Path

import numpy as np

from edgert.errors import DeviceError

_BYTES = 8


class OwnLanes:
    """The lanes of a device that this process has for itself."""

    def __init__(self, count: int) -> None:
        self.count = count
        self._ends_s = [0.0] * count
        self._lock = threading.Lock()

    def reserve(self, began_s: float, duration_s: float) -> float:
        """Return when an inference ends that was asked for at ``began_s``."""
        ends_s = self._ends_s
        with self._lock:
            free_s = ends_s[0]
            end_s = (began_s if began_s > free_s else free_s) + duration_s  # max() costs a call
            heapreplace(ends_s, end_s)
        return end_s


class SharedLanes:
    """The lanes of a device that several processes share; a dead one leaves them free."""

    def __init__(self, file: Path, count: int) -> None:
        self.count = count
        self._fd = os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        self._lock = threading.Lock()
        weakref.finalize(self, os.close, self._fd)
        self._size(file)
        self._ends_s = np.frombuffer(mmap.mmap(self._fd, count * _BYTES), np.float64)

    def reserve(self, began_s: float, duration_s: float) -> float:
        """Return when an inference ends that was asked for at ``began_s``."""
        # The file's lock is this process's: between threads it would not exclude.
        with self._lock:
            fcntl.flock(self._fd, fcntl.LOCK_EX)
            try:
                lane = int(self._ends_s.argmin())
                end_s = max(began_s, float(self._ends_s[lane])) + duration_s
                self._ends_s[lane] = end_s
            finally:
                fcntl.flock(self._fd, fcntl.LOCK_UN)
        return end_s

    def _size(self, file: Path) -> None:
        fcntl.flock(self._fd, fcntl.LOCK_EX)
        try:
            size = os.fstat(self._fd).st_size
            if size == 0:
                os.posix_fallocate(self._fd, 0, self.count * _BYTES)
            elif size != self.count * _BYTES:
                raise _other_lanes(file.name, size // _BYTES, self.count)
        finally:
            fcntl.flock(self._fd, fcntl.LOCK_UN)


Lanes = OwnLanes | SharedLanes
# A device is there for as long as a session is open on it.
_OPEN: weakref.WeakValueDictionary[str, Lanes] = weakref.WeakValueDictionary()


def lanes_of(place: str, device: str, count: int, state: Path | None) -> Lanes:
    """Return the lanes of a device: those that this process has open, or new ones.

    Raises:
        DeviceError: The device is open with another number of lanes.
    """
    file = _file(state, device)
    key = str(file or device)
    lanes = _OPEN.get(key)
    if lanes is None:
        lanes = OwnLanes(count) if file is None else SharedLanes(file, count)
        _OPEN[key] = lanes
    if lanes.count != count:
        raise _other_lanes(place, lanes.count, count)
    return lanes


def _file(state: Path | None, device: str) -> Path | None:
    if state is None:
        return None
    # The clock begins anew when the machine does: an old file would hold every inference up.
    boot = Path("/proc/sys/kernel/random/boot_id").read_text()[:8]
    return state / f"emulated-{device}-{boot}.lanes"


def _other_lanes(place: str, here: int, asked: int) -> DeviceError:
    fault = f"it has {here} lanes already, and {asked} are asked for"
    return DeviceError(f"{place}, options, lanes", fault, "Give the same number everywhere")

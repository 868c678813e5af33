"""Watches from outside: memory and fds of every process, and when results come."""

from __future__ import annotations

import threading
import time
from collections import defaultdict
from pathlib import Path
from typing import NamedTuple

import msgspec

from tools.soaking.lines import Lines
from tools.soaking.run import Run

LOOK_EVERY_S = 0.05


class Sample(NamedTuple):
    """A process at a moment; all of one look have its number.

    Attributes:
        pss_mb: Its memory, and its part of what it shares; without files, whose parts change with
            whatever others run of the same libraries.
        own_mb: Its anonymous memory, shared with others or not: only its own doing changes it.
    """

    look: int
    time_s: float
    run: str
    part: str
    pid: int
    pss_mb: float
    own_mb: float
    fds: int


class Line(msgspec.Struct):
    """What is read of a result."""

    stream: str
    frame: int


LINE = msgspec.json.Decoder(Line)


class Watch:
    """A thread that follows the files of results, and samples /proc.

    Args:
        runs: The pipelines.
        every_s: How often /proc is read.

    Attributes:
        samples: Every process, whenever looked at.
        arrivals: By stream: when each result was seen.
        frames: By stream: the number of each result.
    """

    def __init__(self, runs: list[Run], every_s: float) -> None:
        self.samples: list[Sample] = []
        self.arrivals: dict[str, list[float]] = defaultdict(list)
        self.frames: dict[str, list[int]] = defaultdict(list)
        self._runs = runs
        self._every_s = every_s
        self._tails = {run.name: Lines(run.lines) for run in runs}
        self._over = threading.Event()
        self._error: Exception | None = None
        self._thread = threading.Thread(target=self._guard, name="watch")
        self._thread.start()

    def check(self) -> None:
        """Raise what ended the thread, if anything has."""
        if self._error is not None:
            raise self._error

    def close(self) -> None:
        """Read what is left, and end."""
        self._over.set()
        self._thread.join()
        self._read_results()

    def _guard(self) -> None:
        try:
            self._run()
        except Exception as error:  # noqa: BLE001  check() raises it, where it ends the soak
            self._error = error

    def _run(self) -> None:
        next_s, look = time.monotonic(), 0
        while not self._over.wait(LOOK_EVERY_S):
            self._read_results()
            if time.monotonic() >= next_s:
                next_s, look = next_s + self._every_s, look + 1
                self._sample(look)

    def _read_results(self) -> None:
        now_s = time.monotonic()
        for tail in self._tails.values():
            for line in map(LINE.decode, tail.take()):
                self.arrivals[line.stream].append(now_s)
                self.frames[line.stream].append(line.frame)

    def _sample(self, look: int) -> None:
        for run in self._runs:
            for part, pid in run.processes().items():
                now_s = time.monotonic()
                try:
                    pss, own = memory_mb(pid)
                    fds = len(list(Path(f"/proc/{pid}/fd").iterdir()))
                except OSError:  # it has just ended
                    continue
                self.samples.append(Sample(look, now_s, run.name, part, pid, pss, own, fds))


def memory_mb(pid: int) -> tuple[float, float]:
    """Return the proportional memory of a process without files, and its anonymous memory.

    Raises:
        OSError: There is no such process any more.
    """
    text = Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="ascii")
    rows = dict(line.split(":", 1) for line in text.splitlines()[1:])
    if "Pss_Shmem" not in rows:
        raise ProcessLookupError(pid)
    shared, pss, own = (
        int(rows[key].split()[0]) * 1024 / 1e6 for key in ("Pss_Shmem", "Pss_Anon", "Anonymous")
    )
    return pss + shared, own

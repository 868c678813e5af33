"""Kills workers of a run in turn, and measures from outside when results come again."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections import defaultdict
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, ClassVar

from tests.process.runs import worker_pids
from tools.soaking.lines import Lines

ROOT = Path(__file__).resolve().parents[2]
LOOK_EVERY_S = 0.002
FLOWS = 12  # results in a row: more than were under way behind the victim
WITHIN_S = 60.0
FORKED = re.compile(r"worker '(.+)' is process \d+")
# The window is over before the same worker is killed again: each wait is that of a first death.
SETTINGS = ("restart.window_s=0.5", "restart.max_restarts=1000000")


@dataclass(frozen=True, slots=True)
class Wait:
    """What followed on a kill.

    Attributes:
        worker: Who was killed.
        silence_s: The longest time without a result.
        started_s: From the kill until its next process was there.
        opened_s: From the kill until that had opened its stages.
        open_s: How long opening them took, by its own clock.
    """

    PARTS: ClassVar = ("silence_s", "started_s", "opened_s", "open_s")

    worker: str
    silence_s: float
    started_s: float
    opened_s: float
    open_s: float

    def asdict(self) -> dict[str, Any]:
        """Return it for JSON."""
        return {
            name: round(value, 3) if isinstance(value, float) else value
            for name, value in asdict(self).items()
        }


class Victims:
    """A run whose workers are killed; ends with the ``with``.

    Args:
        file: The pipeline; its sink writes to ``EDGERT_OUTPUT``.
        folder: For the log and the results.
        video: What it reads, again and again.
        source: The stage that reads it.
    """

    def __init__(self, file: Path, folder: Path, video: str, source: str) -> None:
        name = f"recovery-{os.getpid()}"
        self._results = Lines(folder / f"{file.stem}.jsonl")
        self._log = Lines(folder / f"{file.stem}.log")
        settings = (f"name={name}", f"{source}.loop=1000000", *SETTINGS)
        command = [
            *(sys.executable, "-m", "edgert", "run", str(file.resolve()), "--no-progress"),
            *("--input", video, "--output", str(self._results.path)),
            *("--log-level", "debug", "--log-format", "json"),
            *(f"--set={setting}" for setting in settings),
        ]
        with self._log.path.open("wb") as log:
            self._process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=ROOT
            )

    def __enter__(self) -> Victims:
        """Wait for the first results."""
        self._wait_flow()
        return self

    def __exit__(self, *_: object) -> None:
        """End the run."""
        self._process.terminate()
        self._process.wait(WITHIN_S)

    def kill_all(self, rounds: int) -> dict[str, list[Wait]]:
        """Kill each worker so often, and return what followed by worker."""
        waits: dict[str, list[Wait]] = defaultdict(list)
        for _ in range(rounds):
            for worker in sorted(worker_pids(self._process.pid).keys() - {"zygote"}):
                waits[worker].append(self._kill(worker))
        return waits

    def _wait_flow(self) -> None:
        seen, deadline_s = 0, time.monotonic() + WITHIN_S
        while seen < FLOWS:
            self._check(deadline_s)
            seen += len(self._results.take())

    def _kill(self, worker: str) -> Wait:
        self._wait_flow()
        self._log.take()
        os.kill(worker_pids(self._process.pid)[worker], signal.SIGKILL)
        killed_s = time.monotonic()
        arrivals, started_s, opened_s, open_ms, left = [killed_s], 0.0, 0.0, 0, FLOWS
        while left > 0:
            now_s = self._check(killed_s + WITHIN_S)
            for line in map(json.loads, self._log.take()):
                forked = FORKED.fullmatch(line["message"])
                if forked and forked[1] == worker:
                    started_s = now_s
                elif line.get("worker") == worker and "open_ms" in line:
                    opened_s, open_ms = now_s, open_ms + line["open_ms"]
            results = len(self._results.take())
            arrivals += [now_s] * bool(results)
            left -= results if opened_s else 0
        silence_s = max(b - a for a, b in pairwise(arrivals))
        return Wait(worker, silence_s, started_s - killed_s, opened_s - killed_s, open_ms / 1e3)

    def _check(self, deadline_s: float) -> float:
        """Let a moment pass, and return the time; end the tool where the run does not go on."""
        time.sleep(LOOK_EVERY_S)
        if self._process.poll() is not None or time.monotonic() > deadline_s:
            self._process.kill()
            sys.exit(f"no results: {self._log.path.read_text(errors='replace')[-2000:]}")
        return time.monotonic()

"""Threads that run inferences, for runtimes whose call returns only when the result is there."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

from edgert.backends.base import Done

Job = TypeVar("Job")
Run = Callable[[Job], BaseException | None]


class Lanes(Generic[Job]):
    """A thread for each inference that is computed at once; what is more waits in order.

    Args:
        runs: What runs a job in each lane, and returns the error that ended it or None.
        name: What the threads are called.
        requests: Jobs that will be in flight at once. With one there is no thread: ``start`` runs
            the job itself, and ``done`` is called before it returns.
    """

    def __init__(self, runs: Sequence[Run[Job]], name: str, requests: int) -> None:
        self._runs = list(runs)
        self._jobs: queue.SimpleQueue[tuple[Job, Done] | None] = queue.SimpleQueue()
        self._threads = [
            threading.Thread(target=self._work, args=(run,), name=name, daemon=True)
            for run in (self._runs if requests > 1 else [])
        ]
        for thread in self._threads:
            thread.start()

    def start(self, job: Job, done: Done) -> None:
        """Run a job in the first lane that is free."""
        if self._threads:
            self._jobs.put((job, done))
        else:
            done(self._runs[0](job))

    def close(self) -> None:
        """Wait for every job that was started."""
        for _ in self._threads:
            self._jobs.put(None)
        for thread in self._threads:
            thread.join()
        self._threads.clear()
        self._runs.clear()

    def _work(self, run: Run[Job]) -> None:
        while (entry := self._jobs.get()) is not None:
            job, done = entry
            error = run(job)
            # Neither ``done`` nor the next wait must meet what the caller has to get back.
            del entry, job
            done(error)
            del done, error

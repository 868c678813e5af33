"""What is done to the parts by a seed: killed, frozen, cut off, starved; and when."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any, TypeAlias

from tools.soaking.quota import Quota
from tools.soaking.run import Run
from tools.soaking.scene import Scene

Undo = Callable[[], None]
# The victim, the streams that it may hold up, and how it is taken back; None for what is over.
Done: TypeAlias = tuple[str, tuple[str, ...], Undo | None]
NOTHING: Done = ("", (), None)


@dataclass(slots=True)
class Harm:
    """Something that was done to a part.

    Attributes:
        what: Its kind.
        victim: The part.
        streams: Whose results it may hold up.
        begun_s: When, by the monotonic clock.
        ended_s: When it was over; as ``begun_s`` for what takes no time.
    """

    what: str
    victim: str
    streams: tuple[str, ...]
    begun_s: float
    ended_s: float

    def told(self, start_s: float) -> dict[str, Any]:
        """Return it with times from the start of the soak."""
        times = {
            "begun_s": round(self.begun_s - start_s, 3),
            "ended_s": round(self.ended_s - start_s, 3),
        }
        return {**asdict(self), **times}


class Harms:
    """Chooses what is done next, does it, and takes it back when its time is over.

    Several may be under way at once: that is how things happen in a cabinet.

    Args:
        runs: The pipelines.
        scene: The cameras.
        quotas: A control group for each pipeline, or none where there cannot be any.
        seed: What all choices come from.
        every_s: How often something is done, on average.
    """

    def __init__(
        self, runs: list[Run], scene: Scene, quotas: dict[str, Quota], seed: int, every_s: float
    ) -> None:
        self.done: list[Harm] = []
        self._runs = runs
        self._scene = scene
        self._quotas = quotas
        self._chance = random.Random(seed)  # noqa: S311  it shall come again, not be secret
        self._every_s = every_s
        self._next_s = time.monotonic()
        self._under_way: list[tuple[Harm, Undo]] = []
        self._kinds: dict[str, tuple[int, Callable[[], Done]]]
        self._kinds = {
            "kill worker": (6, self._kill_worker),
            "freeze worker": (3, self._freeze_worker),
            "kill camera": (1, self._kill_camera),
            "freeze camera": (2, self._freeze_camera),
            "cut network": (2, self._cut),
            "hold network": (2, self._hold),
            "spoil network": (1, self._spoil),
            "starve": (2, self._starve),
        }

    def step(self) -> None:
        """Take back what is over, and do what is due."""
        now_s = time.monotonic()
        self._end([entry for entry in self._under_way if entry[0].ended_s <= now_s])
        if now_s < self._next_s:
            return
        self._next_s = now_s + self._chance.uniform(0.2, 1.8) * self._every_s
        kinds = list(self._kinds)
        (what,) = self._chance.choices(kinds, [self._kinds[kind][0] for kind in kinds])
        length_s = self._chance.choice([0.5, 1, 2, 4, 8])  # from a hiccup to what counts as hung
        victim, streams, undo = self._kinds[what][1]()
        if not victim:
            return
        begun_s = time.monotonic()
        harm = Harm(what, victim, streams, begun_s, begun_s + (length_s if undo else 0))
        self.done.append(harm)
        if undo:
            self._under_way.append((harm, undo))

    def finish(self) -> None:
        """Take everything back."""
        self._end(list(self._under_way))

    def _end(self, over: list[tuple[Harm, Undo]]) -> None:
        for entry in over:
            harm, undo = entry
            undo()
            harm.ended_s = time.monotonic()
            self._under_way.remove(entry)

    def _worker(self) -> tuple[str, int, tuple[str, ...]]:
        """Choose a worker that is there: its name, its pid, and whose frames pass it."""
        run = self._chance.choice(self._runs)
        workers = run.workers()
        if not workers:
            return "", 0, ()
        name = self._chance.choice(sorted(workers))
        streams = (name,) if name in run.streams else run.streams
        return f"{run.name}/{name}", workers[name], streams

    def _kill_worker(self) -> Done:
        victim, pid, streams = self._worker()
        send(pid, signal.SIGKILL)
        return victim, streams, None

    def _freeze_worker(self) -> Done:
        victim, pid, streams = self._worker()
        send(pid, signal.SIGSTOP)
        return victim, streams, lambda: send(pid, signal.SIGCONT)

    def _camera(self) -> str:
        return self._chance.choice(sorted(self._scene.servers))

    def _server(self) -> str:
        """Choose a camera whose server is as it should be, or nobody."""
        out = {harm.victim for harm, _ in self._under_way if harm.what.endswith(" camera")}
        return self._chance.choice(sorted(self._scene.servers.keys() - out) or [""])

    def _kill_camera(self) -> Done:
        name = self._server()
        if not name:
            return NOTHING
        server = self._scene.servers[name]
        server.stop()
        return name, (name,), server.start

    def _freeze_camera(self) -> Done:
        name = self._server()
        if not name:
            return NOTHING
        server = self._scene.servers[name]
        server.signal(signal.SIGSTOP)
        return name, (name,), lambda: server.signal(signal.SIGCONT)

    def _cut(self) -> Done:
        name = self._camera()
        self._scene.proxies[name].cut()
        return name, (name,), None

    def _hold(self) -> Done:
        return self._switch("hold")

    def _spoil(self) -> Done:
        return self._switch("spoil")

    def _switch(self, what: str) -> Done:
        name = self._camera()
        proxy = self._scene.proxies[name]
        setattr(proxy, what, True)
        return name, (name,), lambda: setattr(proxy, what, False)

    def _starve(self) -> Done:
        run = self._chance.choice(self._runs)
        share = self._chance.choice([0.02, 0.05, 0.2])
        if run.name in self._quotas:
            quota = self._quotas[run.name]
            quota.limit(share)
            return f"{run.name} (quota of {share:g} cores)", run.streams, quota.lift
        busy = [subprocess.Popen(BUSY) for _ in range(2 * (os.cpu_count() or 1))]
        everybody = tuple(stream for run in self._runs for stream in run.streams)
        return f"all ({len(busy)} busy processes)", everybody, lambda: end(busy)


BUSY = [sys.executable, "-c", "while True: pass"]


def send(pid: int, number: signal.Signals) -> None:
    """Signal a process that may be gone."""
    if pid:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)


def end(processes: list[subprocess.Popen[bytes]]) -> None:
    """Kill processes and wait for them."""
    for process in processes:
        process.kill()
        process.wait()

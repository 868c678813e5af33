"""A run of a pipeline that is soaked: a process, its workers, its files."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.process.runs import folders_of, is_gone, worker_pids

ROOT = Path(__file__).resolve().parents[2]
END_WITHIN_S = 60.0
FAULTS = {"tracebacks": "Traceback", "poison": "has ended its process twice"}


class Run:
    """``edgert run`` of one file, its log and its summary beside it.

    Args:
        name: What it is called here.
        file: The pipeline.
        streams: Its streams.
    """

    def __init__(self, name: str, file: Path, streams: tuple[str, ...]) -> None:
        self.name = name
        self.streams = streams
        self.lines = file.with_suffix(".jsonl")
        self.ended_s = 0.0
        self._last: dict[str, int] = {}
        self._log = file.with_suffix(".log")
        self._summary = file.with_suffix(".summary.json")
        self._pipeline = json.loads(file.read_text(encoding="utf-8"))["name"]
        self.lines.unlink(missing_ok=True)  # of a soak before, in a folder that is kept
        self._summary.unlink(missing_ok=True)
        # What is kept of poison frames belongs to this run.
        environment = {**os.environ, "XDG_STATE_HOME": str(file.parent / "state")}
        command = [sys.executable, "-m", "edgert", "run", str(file), "--no-progress"]
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                [*command, "--summary", str(self._summary)],
                cwd=ROOT,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        self.pid = self._process.pid

    @property
    def is_running(self) -> bool:
        """Whether it goes on."""
        return self._process.poll() is None

    def processes(self) -> dict[str, int]:
        """Return every process of it by name: supervisor, zygote, workers."""
        return {"supervisor": self.pid, **worker_pids(self.pid)}

    def workers(self) -> dict[str, int]:
        """Return the workers by name."""
        return {name: pid for name, pid in worker_pids(self.pid).items() if name != "zygote"}

    def stop(self) -> None:
        """Let it drain; kill what does not end."""
        self._last = self.processes()
        begun_s = time.monotonic()
        self._process.send_signal(signal.SIGTERM)
        try:
            self._process.wait(END_WITHIN_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self.ended_s = time.monotonic() - begun_s

    def kill(self) -> None:
        """End it at once."""
        self._process.kill()
        self._process.wait()

    def outcome(self) -> dict[str, Any]:
        """Return what it says of itself at the end, and what is left of it."""
        summary = json.loads(self._summary.read_text()) if self._summary.exists() else {}
        log = self._log.read_text(errors="replace")
        restarts = {s["worker"]: s["restarts"] for s in summary.get("stages", {}).values()}
        return {
            "exit_code": self._process.returncode,
            "drained_s": round(self.ended_s, 2),
            "restarts": restarts,
            "streams": summary.get("streams", {}),
            "uncounted": uncounted(summary),
            "sources": summary.get("sources", {}),
            "error": summary.get("error", "no summary"),
            "left_over": self._left_over(),
            **{what: len(re.findall(words, log)) for what, words in FAULTS.items()},
        }

    def _left_over(self) -> list[str]:
        """Return folders of sockets and processes that should have gone with it."""
        there = [f"{name} ({pid})" for name, pid in self._last.items() if not is_gone(pid)]
        return [*map(str, folders_of(self._pipeline)), *there]


def uncounted(summary: Mapping[str, Any]) -> dict[str, int]:
    """Return where read is not processed + dropped + lost, and by how much."""
    places = {**summary.get("streams", {}), **summary.get("links", {})}
    gaps = {
        place: c["read"] - c["processed"] - c["dropped"] - c["lost"] for place, c in places.items()
    }
    return {place: gap for place, gap in gaps.items() if gap}

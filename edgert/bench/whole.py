"""Runs the whole pipeline as its user does, by ``edgert run`` in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from edgert.errors import EXIT_USER, RunError, UserError

_STOP_WITHIN_S = 20
_PLACE = "edgert run"


class StageFigures(msgspec.Struct, frozen=True):
    """What the summary says of a stage, as far as it is needed here."""

    frames: int
    cpu_s: float
    copied_bytes: int
    worker: str
    batch: dict[str, Any] | None = None


class Whole(msgspec.Struct, frozen=True):
    """What the summary of the whole run says."""

    fps: float
    frames: dict[str, int]
    stages: dict[str, StageFigures]
    links: dict[str, dict[str, int]]
    latency_ms: dict[str, float | None] = {}
    bottleneck: dict[str, str] = {}


def run_whole(arguments: Sequence[str], variables: Mapping[str, str], folder: Path) -> Whole:
    """Run a pipeline to its end and return what its summary says.

    Args:
        arguments: What follows ``edgert run``.
        variables: Environment variables for the file's ``${NAME}``.
        folder: Where the summary and the log go.

    Raises:
        UserError: The run ended with exit code 2.
        RunError: It ended with another one.
    """
    summary, said = folder / "summary.json", folder / "stderr.txt"
    command = [
        *(sys.executable, "-P", "-m", "edgert", "run", *arguments),
        *("--summary", str(summary), "--no-progress", "--log-level", "error"),
    ]
    path = os.pathsep.join(each or str(Path.cwd()) for each in sys.path)
    environment = {**os.environ, **variables, "PYTHONPATH": path}
    with said.open("wb") as stderr:
        process = subprocess.Popen(
            command, stdout=subprocess.DEVNULL, stderr=stderr, env=environment
        )
        try:
            code = process.wait()
        finally:
            _end(process)
    if code:
        kind = UserError if code == EXIT_USER else RunError
        raise kind(_PLACE, _why(summary, said) or f"ended with exit code {code}")
    return msgspec.json.decode(summary.read_bytes(), type=Whole)


def _end(process: subprocess.Popen[bytes]) -> None:
    """Let a run that is still going on drain, else kill it."""
    if process.poll() is not None:
        return
    process.terminate()
    try:
        process.wait(_STOP_WITHIN_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _why(summary: Path, said: Path) -> str:
    """Return the first cause: from the summary, else the last line on standard error."""
    if summary.exists():
        found: dict[str, Any] = msgspec.json.decode(summary.read_bytes())
        return str(found.get("error", ""))
    lines = said.read_text(errors="replace").strip().splitlines()
    return lines[-1] if lines else ""

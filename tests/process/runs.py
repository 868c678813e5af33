"""Runs of real pipelines for tests: written, started, watched, and looked for afterwards."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from edgert import Pipeline
from edgert.runtime.folder import runtime_dir

REPOSITORY = Path(__file__).parent.parent.parent
KINDS = "tests.process.kinds:"
NEVER = {"policy": "never"}


def unique_name() -> str:
    return f"test-{uuid.uuid4().hex[:12]}"


def write_pipeline(
    folder: Path,
    stages: Mapping[str, Mapping[str, Any]],
    in_flight: int = 4,
    name: str = "",
    restart: Mapping[str, Any] | None = None,
) -> Path:
    """Write a pipeline file; kinds that begin with a capital letter are those of ``kinds.py``."""
    whole = {
        stage: {**keys, "kind": KINDS * keys["kind"][0].isupper() + keys["kind"]}
        for stage, keys in stages.items()
    }
    document = {
        "version": 1,
        "name": name or unique_name(),
        "stages": whole,
        "limits": {"in_flight": in_flight},
        "restart": restart or {},
    }
    file = folder / "pipeline.yaml"
    file.write_text(json.dumps(document))
    return file


def joined(folder: Path, count: int, one: str = "Step") -> dict[str, dict[str, Any]]:
    """Return a join of a short and a long way, the long one with several frames in flight."""
    return {
        "src": {"kind": "Numbers", "count": count, "words": 64},
        "one": {"kind": one, "inputs": {"n": "src.n"}},
        "two": {"kind": "AsyncStep", "inputs": {"n": "one.n"}},
        "both": {
            "kind": "Both",
            "inputs": {"a": "src.n", "b": "two.n"},
            "path": str(folder / "both.txt"),
        },
        "out": {"kind": "Write", "inputs": {"n": "two.n"}, "path": str(folder / "out.txt")},
    }


class NoModels:
    """For pipelines without models."""

    def describe(self, model: str, shapes: Mapping[str, Any]) -> Any:
        raise AssertionError(model)


def load(
    folder: Path,
    stages: Mapping[str, Mapping[str, Any]],
    in_flight: int = 4,
    name: str = "",
    restart: Mapping[str, Any] | None = None,
) -> Pipeline:
    file = write_pipeline(folder, stages, in_flight, name, restart)
    return Pipeline.load(file, models=NoModels())


def wait_for(
    condition: Callable[[], Any], what: str, timeout_s: float = 30, every_s: float = 0.01
) -> Any:
    """Wait until a condition holds and return its value."""
    deadline_s = time.monotonic() + timeout_s
    clock = threading.Event()
    while not (value := condition()):
        if time.monotonic() > deadline_s:
            raise TimeoutError(f"{what}: not within {timeout_s:g} s")
        clock.wait(every_s)
    return value


def descendants(pid: int) -> dict[int, str]:
    """Return pid and name of every process below one.

    Left out is what another test's pool of processes leaves until this process ends.
    """
    parents: dict[int, tuple[int, str]] = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            text = (folder / "stat").read_text()
            is_anothers = b"multiprocessing.resource_tracker" in (folder / "cmdline").read_bytes()
        except OSError:
            continue
        if is_anothers:
            continue
        name, _, rest = text.partition("(")[2].rpartition(")")
        state, parent = rest.split()[:2]
        parents[int(folder.name)] = (int(parent), f"{name} {state}")
    found: dict[int, str] = {}
    below = {pid}
    while below:
        below = {child for child, (parent, _) in parents.items() if parent in below}
        found |= {child: parents[child][1] for child in below}
    return found


def worker_pids(pid: int) -> dict[str, int]:
    """Return the workers below a supervisor by name, zombies left out; ``zygote`` is among them."""
    return {
        name.split(":")[1].split()[0]: child
        for child, name in descendants(pid).items()
        if name.startswith("ert:") and not name.endswith("Z")
    }


def is_gone(pid: int) -> bool:
    """Whether a process is no more, or a zombie that nobody has reaped yet."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


def open_fds() -> dict[int, str]:
    """Return what this process has open."""
    found = {}
    for link in Path("/proc/self/fd").iterdir():
        try:
            found[int(link.name)] = str(link.readlink())
        except OSError:  # the fd of the listing itself
            continue
    return found


def folders_of(name: str) -> list[Path]:
    return list(runtime_dir().glob(f"{name}*"))


class Running:
    """``edgert run`` in a process of its own."""

    def __init__(self, process: subprocess.Popen[str], folder: Path) -> None:
        self.process = process
        self.pid = process.pid
        self.summary_file = folder / "summary.json"

    def wait_workers(self, *names: str) -> dict[str, int]:
        """Wait until workers of these names run; return all by name."""

        def there() -> dict[str, int]:
            assert self.process.poll() is None, self.process.communicate()
            pids = worker_pids(self.pid)
            return pids if set(names) <= set(pids) else {}

        pids: dict[str, int] = wait_for(there, f"workers {names}")
        return pids

    def wait_end(self, timeout_s: float = 60) -> tuple[int, str, str]:
        """Wait for the end; return exit code, standard output, standard error."""
        out, err = self.process.communicate(timeout=timeout_s)
        return self.process.returncode, out, err

    def summary(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.summary_file.read_text())
        return found


@contextmanager
def started(file: Path, *arguments: str, **options: Any) -> Iterator[Running]:
    """Start ``edgert run`` in a process group of its own; kill what is left of it at the end."""
    running_file = file.parent / "summary.json"
    command = [
        *(sys.executable, "-m", "edgert", "run", str(file), "--no-progress"),
        *("--summary", str(running_file), *arguments),
    ]
    process = subprocess.Popen(
        command,
        cwd=REPOSITORY,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        **options,
    )
    with process:
        try:
            yield Running(process, file.parent)
        finally:
            process.kill()


def run(file: Path, *arguments: str) -> tuple[int, str, str, dict[str, Any]]:
    """Run a pipeline to its end: exit code, standard output and error, summary (or empty)."""
    with started(file, *arguments) as running:
        code, out, err = running.wait_end()
        summary = running.summary() if running.summary_file.exists() else {}
    return code, out, err, summary


def assert_adds_up(summary: Mapping[str, Any]) -> None:
    """Read = processed + dropped + lost, for every stream and every edge."""
    for place, counts in {**summary["streams"], **summary["links"]}.items():
        settled = counts["processed"] + counts["dropped"] + counts["lost"]
        assert counts["read"] == settled, (place, counts)

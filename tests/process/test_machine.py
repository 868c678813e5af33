"""Cores, threads and memory: a run keeps to what its process was given (T1 T3 T4 T7 T11)."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from edgert.device import memory
from edgert.errors import PipelineError, ResourceError
from tests.process.runs import REPOSITORY, load, run, started, write_pipeline

pytestmark = pytest.mark.process


def watching(count: int = 20, words: int = 1, **watch: Any) -> dict[str, dict[str, Any]]:
    return {
        "src": {"kind": "Numbers", "count": count, "words": words},
        "watch": {"kind": "Watch", "inputs": {"n": "src.n"}, **watch},
    }


def facts_of(err: str) -> dict[str, Any]:
    """Return what the stage printed, which stands among the lines for people."""
    (facts,) = (line for line in err.splitlines() if line.startswith("{"))
    found: dict[str, Any] = json.loads(facts)
    return found


def test_one_core_of_many(tmp_path: Path) -> None:
    """T1: started on one core, every thread of every worker stays there, and there is one."""
    core = max(os.sched_getaffinity(0))
    file = write_pipeline(tmp_path, watching())
    with started(file, preexec_fn=lambda: os.sched_setaffinity(0, [core])) as running:
        code, _, err = running.wait_end()
    assert code == 0, err
    facts = facts_of(err)
    assert facts["threads"] == facts["cv2"] == 1
    assert all(cores == [core] for cores in facts["cores"])
    assert "error" not in err.lower()
    assert running.summary()["stages"]["watch"]["cores"] == [core]


def test_cores_of_a_stage_hold_for_all_its_threads(tmp_path: Path) -> None:
    allowed = sorted(os.sched_getaffinity(0))
    code, _, err, _ = run(write_pipeline(tmp_path, watching(cores=[allowed[-1]])))
    assert code == 0, err
    facts = facts_of(err)
    assert len(facts["cores"]) > 1  # ZeroMQ's threads, at least
    assert all(cores == [allowed[-1]] for cores in facts["cores"])
    assert facts["threads"] == facts["cv2"] == 1
    assert facts["name"] == "ert:watch"


def test_cores_outside_the_mask_are_refused(tmp_path: Path) -> None:
    outside = max(os.sched_getaffinity(0)) + 1
    with pytest.raises(PipelineError) as raised:
        load(tmp_path, watching(cores=[outside]))
    assert f"of {outside} this process may not use {outside}, only " in str(raised.value)


def test_a_parent_that_used_opencv_and_threads(tmp_path: Path) -> None:
    """T3: workers come from a process that never ran an operation of it."""
    file = write_pipeline(tmp_path, watching(5))
    script = textwrap.dedent(f"""
        import threading
        import cv2
        import numpy as np
        import edgert
        cv2.setNumThreads(4)
        picture = np.zeros((1080, 1920, 3), np.uint8)
        def work():
            for _ in range(20):
                cv2.resize(cv2.GaussianBlur(picture, (9, 9), 2), (64, 64))
        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        print(edgert.Pipeline.load({str(file)!r}).run().frames["processed"])
        for thread in threads:
            thread.join()
    """)
    done = subprocess.run(
        [sys.executable, "-c", script],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert done.stdout.splitlines()[-1] == "5"
    assert facts_of(done.stderr)
    assert done.stderr.count("\n") == 1


def test_memory_of_large_frames_comes_back(tmp_path: Path) -> None:
    """T11: 500 frames of 10 MiB go through the ring's slots and nowhere else."""
    stages = watching(500, words=10 * 2**20 // 8)
    code, _, err, summary = run(write_pipeline(tmp_path, stages, in_flight=2))
    assert code == 0, err
    assert summary["frames"]["processed"] == 500
    rss = facts_of(err)["rss"]
    assert max(rss[20:]) - rss[19] < 10 * 2**20
    assert summary["memory"]["shared_mb"] < 40


def test_nothing_is_left_of_a_reader_that_is_killed(tmp_path: Path) -> None:
    """T7: segments have no name, so that nobody can remove or leave one."""
    before = set(Path("/dev/shm").iterdir())
    stages = watching()
    stages["out"] = {
        "kind": "Write",
        "inputs": {"n": "src.n"},
        "path": str(tmp_path / "out.txt"),
        "die_at": 5,
    }
    assert run(write_pipeline(tmp_path, stages))[0] == 0
    assert set(Path("/dev/shm").iterdir()) <= before


def test_rings_that_do_not_fit_are_refused(tmp_path: Path) -> None:
    """T4: with both numbers, before anything is reserved or started."""
    machine = memory.available_bytes().bytes
    pipeline = load(tmp_path, watching(words=machine // 8))
    with pytest.raises(ResourceError) as raised:
        pipeline.run()
    words = str(raised.value)
    assert memory.in_units(pipeline.plan.shared_bytes) in words
    assert "of memory are needed and" in words
    assert "Lower limits.in_flight, queue slots or max_size of the sources" in words


@pytest.fixture
def group() -> Iterator[Path]:
    """A control group (version 1) with 200 MiB of memory."""
    root = Path("/sys/fs/cgroup/memory")
    if os.getuid() or not (root / "memory.limit_in_bytes").exists():
        pytest.skip("needs root and memory control groups of version 1")
    folder = root / f"edgert-test-{uuid.uuid4().hex[:8]}"
    try:
        folder.mkdir()
        (folder / "memory.limit_in_bytes").write_text(str(200 * 2**20))
    except OSError as error:
        pytest.skip(f"no control group can be made here: {error}")
    yield folder
    folder.rmdir()


def test_a_memory_limit_of_a_control_group(tmp_path: Path, group: Path) -> None:
    """T4: an error with the numbers, where reserving alone would be answered with a kill."""
    file = write_pipeline(tmp_path, watching(words=60 * 2**20 // 8))
    with started(
        file, preexec_fn=lambda: (group / "cgroup.procs").write_text(str(os.getpid()))
    ) as running:
        code, _, err = running.wait_end()
    assert code == 2, err
    assert "of memory are needed and" in err
    assert f"control group /{group.name} uses" in err
    assert "of its 200.0 MiB" in err

"""Workers killed at random moments: the run goes on or ends by itself, and all is counted."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import time
from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pytest

from edgert import Pipeline
from edgert.runtime.run import Outcome, Run, RunOptions
from tests.process.runs import NEVER, assert_adds_up, folders_of, is_gone, load, open_fds, wait_for

pytestmark = [pytest.mark.process, pytest.mark.slow]

ROUNDS = int(os.environ.get("EDGERT_STRESS_ROUNDS", "14"))
GO_ON_ROUNDS = max(1, ROUNDS // 3)  # each is several kills long
FIRST_SEED = int(os.environ.get("EDGERT_STRESS_SEED", "0"))
ENDLESS = 10**9
STOP_TIMEOUT_S = 20.0


def stages(folder: Path) -> dict[str, dict[str, Any]]:
    """Two streams through a join of a short and a long way, and a preview that drops."""
    preview = [
        {"from": f"{one}.n", "queue": {"slots": 2, "when_full": "drop-oldest"}}
        for one in ("left", "right")
    ]
    return {
        "left": {"kind": "Numbers", "count": ENDLESS, "words": 64},
        "right": {"kind": "Numbers", "count": ENDLESS, "words": 64, "lose": [5, 60]},
        "one": {
            "kind": "Step",
            "inputs": {"n": ["left.n", "right.n"]},
            "lose": [7, 70],
            "filter": [9, 90, 91],
        },
        "two": {"kind": "AsyncStep", "inputs": {"n": "one.n"}, "lose": [11]},
        "both": {
            "kind": "Both",
            "inputs": {"a": ["left.n", "right.n"], "b": "two.n"},
            "path": str(folder / "both.txt"),
        },
        "out": {"kind": "Write", "inputs": {"n": "two.n"}, "path": str(folder / "out.txt")},
        "preview": {
            "kind": "Write",
            "inputs": {"n": preview},
            "path": str(folder / "preview.txt"),
            "wait_ms": 1,
        },
    }


class End(NamedTuple):
    """How a run ended, whom it lost, and how long that took."""

    outcome: Outcome
    victims: set[str]
    pids: dict[str, int]
    took_s: float


def end_of(pipeline: Pipeline, chance: random.Random) -> End:
    """Run until a worker (perhaps another, too) is killed at a random moment, and to the end."""
    run = Run(pipeline.plan, RunOptions(stop_timeout_s=STOP_TIMEOUT_S))
    run.start()
    victim = chance.choice(pipeline.plan.workers).name
    before_start = chance.random() < 0.2
    second = chance.choice(pipeline.plan.workers).name if chance.random() < 0.3 else ""
    delay_s = chance.uniform(0, 0.4)
    victims = {victim}
    pids: dict[str, int] = {}
    seen_s = killed_s = 0.0
    while run.is_running:
        pids |= dict(run._supervisor.team.processes())
        is_there = victim in pids if before_start else run.progress().elapsed_s > 0
        if is_there and not seen_s:
            seen_s = time.monotonic()
        if seen_s and not killed_s and time.monotonic() - seen_s >= delay_s:
            os.kill(pids[victim], signal.SIGKILL)
            killed_s = time.monotonic()
        elif killed_s and second in pids and time.monotonic() - killed_s >= delay_s / 20:
            kill_if_there(pids[second])
            victims.add(second)
            second = ""
        run.step(0.002 if not killed_s else 0.1)
    took_s = time.monotonic() - killed_s
    return End(run.finish(), victims, pids, took_s)


def kill_if_there(pid: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


SHARED = (
    {},
    {"one": "middle", "two": "middle"},
    {"left": "mixed", "one": "mixed", "out": "mixed"},
    {"two": "ends", "both": "ends", "preview": "ends"},
    {},
    {},
)
# By turns, too: stages that run as several workers.
REPLICAS: tuple[dict[str, tuple[str, int]], ...] = (
    {"one": ("Shared", 2), "two": ("AsyncShared", 3)},
    *({} for _ in range(3)),
    {"two": ("AsyncShared", 3)},
    {"one": ("Shared", 2)},
)


def arrange(asked: dict[str, dict[str, Any]], seed: int) -> None:
    """Let stages share workers, or have several."""
    for stage, worker in SHARED[seed % len(SHARED)].items():
        asked[stage]["worker"] = worker
    for stage, (kind, count) in REPLICAS[seed % len(REPLICAS)].items():
        asked[stage] |= {"kind": kind, "replicas": count}


@pytest.mark.parametrize("seed", range(FIRST_SEED, FIRST_SEED + ROUNDS))
def test_a_killed_worker(tmp_path_factory: pytest.TempPathFactory, seed: int) -> None:
    """By turns each stage has a worker of its own, or some share one."""
    folder = tmp_path_factory.mktemp("kill")
    asked = stages(folder)
    arrange(asked, seed)
    loaded = load(folder, asked, restart=NEVER)
    fds = open_fds()
    outcome, victims, pids, took_s = end_of(loaded, random.Random(seed))  # noqa: S311
    summary = msgspec.to_builtins(outcome.summary)
    said = [str(error) for error in outcome.errors]
    assert outcome.exit_code == 1, said
    assert len(said) == 1, said
    words = [f"worker '{name}' (process {pids[name]}): was ended by SIGKILL" for name in victims]
    assert any(said[0].startswith(each) for each in words), said
    assert took_s < STOP_TIMEOUT_S / 2
    assert_adds_up(summary)
    assert_whole(loaded, folder, victims, summary)
    wait_for(lambda: all(map(is_gone, pids.values())), "every process gone")
    assert not folders_of(loaded.plan.name)
    assert open_fds().keys() == fds.keys()


FRAMES = 1500


def killed_often(pipeline: Pipeline, chance: random.Random) -> Outcome:
    """Run a whole pipeline while its workers are killed, one or two at a time."""
    run = Run(pipeline.plan, RunOptions(stop_timeout_s=STOP_TIMEOUT_S))
    run.start()
    workers = [worker.name for worker in pipeline.plan.workers]
    kills = chance.randrange(3, 9)
    next_s = 0.0
    while run.is_running:
        run.step(0.002)
        alive = dict(run._supervisor.team.processes())
        if not kills or not run.progress().elapsed_s or time.monotonic() < next_s:
            continue
        for victim in chance.sample(workers, chance.choice([1, 1, 1, 2])):
            member = run._supervisor.members[victim]
            if victim in alive and member.was_ready:
                kill_if_there(alive[victim])
        kills -= 1
        next_s = time.monotonic() + chance.uniform(0, 0.3)
    return run.finish()


@pytest.mark.parametrize("seed", range(FIRST_SEED, FIRST_SEED + GO_ON_ROUNDS))
def test_killed_workers_go_on(tmp_path_factory: pytest.TempPathFactory, seed: int) -> None:
    """Whatever dies at whatever moment: the run ends well, in order, and nothing is unaccounted."""
    folder = tmp_path_factory.mktemp("restart")
    asked = stages(folder)
    arrange(asked, seed)
    for source in ("left", "right"):
        asked[source]["count"] = FRAMES
    restart = {"delay_ms": 1, "max_restarts": 1000}
    loaded = load(folder, asked, restart=restart)
    outcome = killed_often(loaded, random.Random(seed))  # noqa: S311
    assert not outcome.errors
    assert outcome.exit_code == 0
    summary = msgspec.to_builtins(outcome.summary)
    assert_adds_up(summary)
    assert summary["frames"]["read"] == 2 * FRAMES
    for leaf in ("both", "out"):
        rows = [line.split() for line in (folder / f"{leaf}.txt").read_text().splitlines()]
        for stream in ("0", "1"):
            numbers = [int(row[1]) for row in rows if row[0] == stream and row[1] != "end"]
            assert numbers == sorted(numbers), leaf
            # Seven frames of each stream are lost or filtered as the file says.
            missing = FRAMES - len(set(numbers))
            assert missing <= 8 + summary["streams"][["left", "right"][int(stream)]]["lost"]


def assert_whole(
    loaded: Pipeline, folder: Path, victims: set[str], summary: dict[str, Any]
) -> None:
    """Files that were closed hold whole, right lines, in order, each frame once."""
    for leaf, columns in (("both", 4), ("out", 3), ("preview", 3)):
        file = folder / f"{leaf}.txt"
        worker = loaded.plan.worker_of(leaf).name
        if worker in victims or not file.exists():
            continue
        rows = [line.split() for line in file.read_text().splitlines()]
        frames = [tuple(map(int, row)) for row in rows if row[1] != "end"]
        assert all(len(row) == columns for row in frames)
        for frame in frames:
            _, sequence, *numbers = frame
            added = {"both": [sequence, sequence + 2], "out": [sequence + 2], "preview": [sequence]}
            assert numbers == added[leaf], (leaf, frame)
        for stream in (0, 1):
            sequences = [frame[1] for frame in frames if frame[0] == stream]
            assert sequences == sorted(set(sequences)), leaf
        assert len(frames) == summary["stages"][leaf]["frames"]
        if leaf != "preview":
            ends = Counter(row[0] for row in rows if row[1] == "end")
            assert leaf == "both" or not frames or ends == {"0": 1, "1": 1}

"""The Python interface: run, results, leaving early, threads, scripts without a guard."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from edgert import Pipeline, RunOptions
from edgert.errors import BusyError, PipelineError, StageError, UserError
from edgert.results import decode
from tests.process.runs import (
    NEVER,
    REPOSITORY,
    NoModels,
    descendants,
    folders_of,
    load,
    open_fds,
    write_pipeline,
)

pytestmark = pytest.mark.process


def finding(count: int = 50, **one: Any) -> dict[str, dict[str, Any]]:
    """A pipeline whose results go to standard output."""
    return {
        "src": {"kind": "Numbers", "count": count},
        "one": {"kind": "Step", "inputs": {"n": "src.n"}, **one},
        "found": {"kind": "Found", "inputs": {"n": "one.n"}},
        "results": {"kind": "sink.jsonl", "inputs": {"detections": "found.detections"}},
    }


def test_results(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    results = list(load(tmp_path, finding()).results())
    assert [result.frame for result in results] == list(range(50))
    assert results[3].stream == "src"
    assert results[3].detections[0].box == (4.0, 0.0, 5.0, 1.0)
    assert capfd.readouterr().out == ""


def test_leaving_the_loop_early_drains(tmp_path: Path) -> None:
    pipeline = load(tmp_path, finding(10**9))
    fds = open_fds()
    results = pipeline.results()
    assert next(results).frame == 0
    assert descendants(os.getpid())
    results.close()
    assert not descendants(os.getpid())
    assert not folders_of(pipeline.plan.name)
    assert open_fds().keys() == fds.keys()


def test_a_slow_caller_slows_the_pipeline_and_loses_nothing(tmp_path: Path) -> None:
    clock = threading.Event()
    frames = []
    for result in load(tmp_path, finding(600)).results():
        frames.append(result.frame)
        clock.wait(0.001)
    assert frames == list(range(600))


def test_a_caller_that_takes_a_long_time_is_no_hang_of_the_sink(tmp_path: Path) -> None:
    """More lines than a pipe holds wait for it, longer than a worker may be at one frame."""
    pipeline = load(tmp_path, finding(2000), restart={"hang_s": 0.5})
    results = pipeline.results()
    frames = [next(results).frame]
    threading.Event().wait(1.5)
    frames += [result.frame for result in results]
    assert frames == list(range(2000))


def test_a_failure_comes_after_the_results_there_were(tmp_path: Path) -> None:
    frames = []
    results = load(tmp_path, finding(raise_at=20), restart=NEVER).results()

    def take_all() -> None:
        frames.extend(result.frame for result in results)

    with pytest.raises(StageError, match="cannot count to 20"):
        take_all()
    assert frames == list(range(20))


def test_an_error_of_the_caller_ends_the_run(tmp_path: Path) -> None:
    class CallersError(Exception):
        pass

    def use(results: Iterator[Any]) -> None:
        for _ in results:
            raise CallersError

    pipeline = load(tmp_path, finding(10**9))
    with pytest.raises(CallersError):
        use(pipeline.results())
    assert list(pipeline.results(RunOptions(max_frames=3)))[-1].frame == 2
    assert not descendants(os.getpid())


def test_results_of_a_pipeline_without_any(tmp_path: Path) -> None:
    stages = {
        "src": {"kind": "Numbers"},
        "out": {"kind": "Write", "inputs": {"n": "src.n"}, "path": str(tmp_path / "out.txt")},
    }
    with pytest.raises(UserError, match=r"has no sink\.jsonl whose path is '-'"):
        load(tmp_path, stages).results()


def test_a_name_that_runs_is_refused_and_nothing_leaks(tmp_path: Path) -> None:
    pipeline = load(tmp_path, finding(10**9))
    first = pipeline.results()
    next(first)
    fds = open_fds()
    for start in (pipeline.run, lambda: next(pipeline.results())):
        with pytest.raises(BusyError, match=f"is running already .process {os.getpid()}."):
            start()
    assert open_fds().keys() == fds.keys()
    first.close()


def test_a_run_in_another_thread(tmp_path: Path) -> None:
    found: list[int] = []

    def work() -> None:
        found.extend(result.frame for result in load(tmp_path, finding()).results())
        found.append(load(tmp_path, finding()).run().frames["processed"])

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert found == [*range(50), 50]


def test_a_generator_that_outlives_the_thread_that_began_it(tmp_path: Path) -> None:
    """The kernel tells the zygote of the thread's end as of its parent's: it must not matter."""
    found: list[Any] = []

    def begin() -> None:
        results = load(tmp_path, finding(200)).results()
        found.append(next(results).frame)
        found.append(results)

    thread = threading.Thread(target=begin)
    thread.start()
    thread.join()
    assert [found[0], *(result.frame for result in found[1])] == list(range(200))


@pytest.mark.parametrize("from_stdin", [False, True], ids=["file", "stdin"])
def test_a_script_without_a_guard(tmp_path: Path, from_stdin: bool) -> None:
    file = write_pipeline(tmp_path, finding(5))
    script = textwrap.dedent(f"""
        import edgert
        for result in edgert.Pipeline.load({str(file)!r}).results():
            print("frame", result.frame)
    """)
    path = tmp_path / "script.py"
    path.write_text(script)
    done = subprocess.run(
        [sys.executable, "-" if from_stdin else str(path)],
        input=script if from_stdin else None,
        capture_output=True,
        text=True,
        check=False,
        cwd=REPOSITORY,
        env={**os.environ, "PYTHONPATH": str(REPOSITORY)},
        timeout=60,
    )
    assert done.stderr == ""
    assert done.stdout.splitlines() == [f"frame {n}" for n in range(5)]
    assert done.returncode == 0


@pytest.mark.parametrize(
    ("closed", "when"),
    [((2,), "before it runs"), ((1, 2), "before it runs"), ((0, 1, 2), "before it loads")],
)
def test_a_script_that_has_closed_what_libraries_print_to(
    tmp_path: Path, closed: tuple[int, ...], when: str
) -> None:
    """A pipe of the run with such a number would have between its results what a stage prints."""
    stages = {**finding(), "one": {"kind": "Careless", "inputs": {"n": "src.n"}, "does": "print"}}
    stages["src"]["lose"] = [3, 5]  # the supervisor logs, too
    script = textwrap.dedent(f"""
        import os
        from pathlib import Path
        import edgert

        def close(moment):
            for number in {closed} if moment == {when!r} else ():
                os.close(number)

        close("before it loads")
        pipeline = edgert.Pipeline.load({str(write_pipeline(tmp_path, stages))!r})
        close("before it runs")
        frames = [result.frame for result in pipeline.results()]
        Path({str(tmp_path / "frames")!r}).write_text(repr(frames))
    """)
    subprocess.run(
        [sys.executable, "-c", script],
        check=True,
        cwd=REPOSITORY,
        env={**os.environ, "PYTHONPATH": str(REPOSITORY)},
        timeout=60,
    )
    frames = [n for n in range(50) if n not in {3, 5}]
    assert (tmp_path / "frames").read_text() == repr(frames)


def test_progress_is_told(tmp_path: Path) -> None:
    phases: list[str] = []
    summary = load(tmp_path, finding(300, wait_ms=1)).run(
        on_tick=lambda progress: phases.append(progress.phase)
    )
    assert summary.frames["processed"] == 300
    assert phases[0] == "starting"
    assert "running" in phases


def test_all_faults_of_a_file_at_once(tmp_path: Path) -> None:
    stages = finding()
    stages["one"]["wait_ms"] = "long"
    stages["found"]["inputs"] = {"n": "nobody.n"}
    with pytest.raises(PipelineError) as raised:
        Pipeline.load(write_pipeline(tmp_path, stages), models=NoModels())
    assert len(raised.value.faults) == 2


def test_settings_in_one_text_are_not_read_letter_by_letter(tmp_path: Path) -> None:
    with pytest.raises(UserError) as raised:
        Pipeline.load(tmp_path / "any.yaml", settings="one.wait_ms=1")
    assert str(raised.value) == (
        "argument `settings`: is a text, 'one.wait_ms=1'. Give a list: ['one.wait_ms=1']."
    )


def test_warnings_are_given(tmp_path: Path) -> None:
    assert load(tmp_path, finding()).warnings == ()
    stages = finding()
    stages["one"] = {"kind": "Patient", "inputs": {"n": "src.n"}, "requests": 9}
    (warning,) = load(tmp_path, stages).warnings
    assert "9 requests can never be busy with limits.in_flight 4" in warning


def test_threads_of_a_stage_may_log(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """A ZeroMQ socket that two threads use at once would end the process."""
    stages = {
        "src": {"kind": "Numbers", "count": 3000},
        "chat": {"kind": "Chatty", "inputs": {"n": "src.n"}},
    }
    summary = load(tmp_path, stages).run()
    assert summary.frames["processed"] == 3000
    said = [record.getMessage() for record in caplog.records if record.name == "edgert.chat"]
    assert [line for line in said if line != "chat"] == [f"frame {n}" for n in range(3000)]
    assert "chat" in said


def test_what_a_stage_prints_is_no_result(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PYTHONUNBUFFERED", raising=False)
    stages = {**finding(), "one": {"kind": "Careless", "inputs": {"n": "src.n"}, "does": "print"}}
    assert [result.frame for result in load(tmp_path, stages).results()] == list(range(50))
    load(tmp_path, stages).run()
    out, err = capfd.readouterr()
    assert len(list(map(decode, out.splitlines()))) == 50
    assert err.count("a word\n") == err.count("a word of a library\n") == 100

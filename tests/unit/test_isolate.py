"""Functions run in real children that answer, raise, print, crash and hang."""

from __future__ import annotations

import ctypes
import os
import select
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from edgert import errors
from edgert.errors import EdgertError, Fault, MediaError, ModelError, PipelineError, RunError
from edgert.isolate import Call, call, call_all

HERE = f"{__name__}:"
SIMPLE = [
    name
    for name, kind in vars(errors).items()
    if isinstance(kind, type) and issubclass(kind, EdgertError) and kind is not PipelineError
]


# What the children run.


def add(left: int, right: int) -> dict[str, int]:
    return {"sum": left + right}


def environment(names: list[str]) -> list[str | None]:
    return [os.environ.get(name) for name in names]


def noisy() -> str:
    sys.stdout.write("noise by Python")
    ctypes.CDLL(None).puts(b"noise by C")
    ctypes.CDLL(None).fflush(None)
    os.write(1, b'{"result": "forged"}')
    os.write(2, b"x" * 300_000)
    return "clean"


def crash(number: int) -> None:
    os.write(2, b"loading the driver\nthe driver is unhappy\n")
    os.kill(os.getpid(), number)


def leave(code: int) -> None:
    os._exit(code)


def hang(marker: str = "") -> None:
    if marker:
        Path(marker).write_text(str(os.getpid()))
    threading.Event().wait()


def raise_ours(name: str) -> None:
    raise getattr(errors, name)("stage 'x'", "it broke", "mend it")


def raise_pipeline() -> None:
    raise PipelineError([Fault("a", "b", "c", "f.yaml", 3, 4), Fault("d", "e")])


def raise_foreign(text: str) -> None:
    raise ValueError(text)


def give_unspeakable() -> Any:
    return object()


def own_hook() -> str:
    return "".join(sorted(name for name in sys.modules if name in {"numpy", "cv2", "asyncio"}))


def run(function: str, timeout_s: float = 30, **arguments: Any) -> Any:
    return call(f"{HERE}{function}", arguments, timeout_s, "test", ModelError)


def test_a_result_comes_back() -> None:
    assert run("add", left=2, right=3) == {"sum": 5}


def test_prints_of_libraries_do_not_garble_the_answer(capfd: pytest.CaptureFixture[str]) -> None:
    assert run("noisy") == "clean"
    assert capfd.readouterr() == ("", "")


def test_the_child_computes_with_one_thread() -> None:
    names = ["OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"]
    assert run("environment", names=names) == ["1", "1"]


@pytest.mark.parametrize("name", SIMPLE)
def test_an_error_of_ours_comes_back_as_it_was(name: str) -> None:
    with pytest.raises(EdgertError) as caught:
        run("raise_ours", name=name)
    assert type(caught.value) is getattr(errors, name)
    assert caught.value.faults == (Fault("stage 'x'", "it broke", "mend it"),)
    assert str(caught.value) == "stage 'x': it broke. Mend it."


def test_every_fault_comes_back() -> None:
    with pytest.raises(PipelineError) as caught:
        run("raise_pipeline")
    assert str(caught.value) == "f.yaml:3:4: a: b. C.\nd: e."


@pytest.mark.parametrize("number", [signal.SIGSEGV, signal.SIGABRT, signal.SIGKILL])
def test_a_crash_names_the_signal_and_the_last_words(number: signal.Signals) -> None:
    with pytest.raises(ModelError) as caught:
        run("crash", number=number)
    ended = f"ended by signal {number.value} ({number.name})"
    assert str(caught.value) == f"test: {ended}; it said last: the driver is unhappy."


def test_an_exit_without_an_answer_is_told() -> None:
    with pytest.raises(ModelError, match="ended with exit code 3 without an answer"):
        run("leave", code=3)


def test_a_foreign_exception_becomes_the_class_asked_for() -> None:
    with pytest.raises(ModelError) as caught:
        run("raise_foreign", text="first line\nsecond line")
    assert str(caught.value) == "test: ValueError: first line."


def test_a_result_that_json_cannot_say_is_told() -> None:
    with pytest.raises(ModelError, match="TypeError"):
        run("give_unspeakable")


def test_an_unknown_function_is_told() -> None:
    with pytest.raises(RunError, match="AttributeError"):
        call(f"{HERE}nobody", {}, 30, "test")


def test_a_hang_is_ended_and_leaves_no_process(tmp_path: Path) -> None:
    marker = tmp_path / "pid"
    with pytest.raises(ModelError, match="did not finish within 1 s and was ended"):
        run("hang", timeout_s=1, marker=str(marker))
    if marker.exists():  # on a very busy machine it was ended before it began
        with pytest.raises(ProcessLookupError):
            os.kill(int(marker.read_text()), 0)


def test_several_run_at_once_and_each_tells_its_own() -> None:
    calls = [
        Call(f"{HERE}add", {"left": 1, "right": 1}, 30, "one"),
        Call(f"{HERE}crash", {"number": signal.SIGSEGV}, 30, "two", MediaError),
        Call(f"{HERE}add", {"left": 2, "right": 2}, 30, "three"),
    ]
    first, second, third = call_all(calls)
    assert (first, third) == ({"sum": 2}, {"sum": 4})
    assert type(second) is MediaError
    assert "two: ended by signal 11" in str(second)


def test_no_file_descriptor_is_left() -> None:
    before = set(Path("/proc/self/fd").iterdir())
    run("add", left=1, right=1)
    assert set(Path("/proc/self/fd").iterdir()) == before


def test_it_stays_light() -> None:
    assert run("own_hook") == ""
    said = subprocess.run(
        [sys.executable, "-c", "import sys, edgert.isolate; print('numpy' in sys.modules)"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert said.stdout == "False\n"


def test_the_child_dies_with_its_caller(tmp_path: Path) -> None:
    marker = tmp_path / "pid"
    os.mkfifo(marker)
    script = (
        "from edgert.isolate import call;"
        f"call('{HERE}hang', {{'marker': {str(marker)!r}}}, 100, 'test')"
    )
    paths = os.pathsep.join(path for path in sys.path if path)
    caller = subprocess.Popen([sys.executable, "-c", script], env={"PYTHONPATH": paths})
    child = os.pidfd_open(int(marker.read_text()))
    caller.kill()
    caller.wait()
    try:
        assert select.select([child], [], [], 30)[0], "the child outlived its caller"
    finally:
        os.close(child)

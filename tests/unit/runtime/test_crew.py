"""Errors on their way from a worker: the class, the exit code and every fault stay."""

from __future__ import annotations

import pytest

from edgert.control.messages import Failed, SaidFault
from edgert.errors import (
    EXIT_BUG,
    DeviceError,
    EdgertError,
    MediaError,
    ModelError,
    ResourceError,
    RunError,
    StageError,
    UserError,
)
from edgert.runtime.crew import describe_status, error_of_failure


@pytest.mark.parametrize(
    "kind", [DeviceError, MediaError, ModelError, ResourceError, StageError, UserError, RunError]
)
def test_an_error_keeps_its_class(kind: type[EdgertError]) -> None:
    faults = (SaidFault("here", "wrong", "Mend it"), SaidFault("there", "wrong too", ""))
    error = error_of_failure(Failed("one", faults, kind.exit_code, "", kind.__name__))
    assert type(error) is kind
    assert str(error) == "here: wrong. Mend it.\nthere: wrong too."


@pytest.mark.parametrize(("code", "kind"), [(2, UserError), (1, RunError), (EXIT_BUG, RunError)])
def test_an_error_of_somebody_elses_class_keeps_its_code(code: int, kind: type) -> None:
    error = error_of_failure(Failed("one", (SaidFault("a", "b", ""),), code, "", "TheirError"))
    assert isinstance(error, kind)
    assert error.exit_code == code


@pytest.mark.parametrize(
    ("status", "words"),
    [
        (0, "ended with code 0"),
        (3, "ended with code 3"),
        (-9, "was ended by SIGKILL, by somebody or for want of memory,"),
        (-11, "was ended by SIGSEGV (a native library crashed)"),
        (-7, "was ended by SIGBUS (shared memory was not there)"),
        (-15, "was ended by SIGTERM"),
        (-64, "was ended by SIGRTMAX"),
        (-63, "was ended by signal 63"),
    ],
)
def test_an_exit_status_in_words(status: int, words: str) -> None:
    assert describe_status(status) == words


def test_a_kill_for_want_of_memory_is_named() -> None:
    words = "was killed by the kernel for want of memory"
    assert describe_status(-9, out_of_memory=True) == words
    assert words not in describe_status(-11, out_of_memory=True)

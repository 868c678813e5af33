"""The child's side: carry out one request, answer, end."""

from __future__ import annotations

import importlib
import os
import resource
import sys
from dataclasses import dataclass
from types import TracebackType
from typing import Any

import msgspec

from edgert.errors import EdgertError
from edgert.isolate.protocol import Answer, Request
from edgert.processes import die_with_parent


def main() -> None:
    """Carry out the request on fd 0 and answer on fd 1."""
    die_with_parent(int(sys.argv[1]))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    answer_fd = _set_answer_aside()
    sys.excepthook = _Raised(answer_fd)
    request = msgspec.json.decode(_read_all(0), type=Request)
    try:
        answer = Answer(result=_resolve(request.function)(**request.arguments))
    except EdgertError as error:
        answer = Answer(error=type(error).__name__, faults=error.faults)
    _send(answer_fd, answer)
    # Without the interpreter's end: a driver's destructor could crash or hang after the answer.
    os._exit(0)


@dataclass(frozen=True, slots=True)
class _Raised:
    """The hook for exceptions that are not ours: they become an answer too."""

    answer_fd: int

    def __call__(
        self, kind: type[BaseException], error: BaseException, _: TracebackType | None
    ) -> None:
        said = str(error).strip().splitlines()
        _send(self.answer_fd, Answer(raised=": ".join([kind.__name__, *said[:1]])))


def _set_answer_aside() -> int:
    answer_fd = os.dup(1)
    os.dup2(2, 1)
    return answer_fd


def _resolve(function: str) -> Any:
    module, _, name = function.partition(":")
    return getattr(importlib.import_module(module), name)


def _read_all(fd: int) -> bytes:
    with os.fdopen(fd, "rb", closefd=False) as stream:
        return stream.read()


def _send(fd: int, answer: Answer) -> None:
    data = memoryview(msgspec.json.encode(answer))
    while data:
        data = data[os.write(fd, data) :]


if __name__ == "__main__":
    main()

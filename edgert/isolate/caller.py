"""The caller's side: start a child for each call, wait for all, bound each by its own time."""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

import msgspec

from edgert import errors
from edgert.errors import EdgertError, RunError
from edgert.isolate.protocol import Answer, Request

TAIL_BYTES = 4096
MAX_ANSWER_BYTES = 64 << 20
CHUNK_BYTES = 1 << 16
EXIT_GRACE_S = 5.0


@dataclass(frozen=True, slots=True)
class Call:
    """One function to run in a child process.

    Attributes:
        function: ``module:name``; called with ``arguments`` as keywords.
        arguments: JSON-able values.
        timeout_s: After this the child is killed.
        place: With which an error of the child itself begins.
        error: Class of error that a crash, a hang or an exception that is not ours becomes.
    """

    function: str
    arguments: Mapping[str, Any]
    timeout_s: float
    place: str
    error: type[EdgertError] = RunError


def call(
    function: str,
    arguments: Mapping[str, Any],
    timeout_s: float,
    place: str,
    error: type[EdgertError] = RunError,
) -> Any:
    """Run one function in a child process and return its result.

    The child dies with the thread that calls.

    Args:
        function: ``module:name``; called with ``arguments`` as keywords.
        arguments: JSON-able values.
        timeout_s: After this the child is killed.
        place: With which an error of the child itself begins.
        error: Class of error that a crash, a hang or an exception that is not ours becomes.

    Raises:
        EdgertError: The very class and faults that the function raised, or ``error``.
    """
    outcome = call_all([Call(function, arguments, timeout_s, place, error)])[0]
    if isinstance(outcome, EdgertError):
        raise outcome
    return outcome


def call_all(calls: Sequence[Call]) -> list[Any]:
    """Run several functions at once, each in a child of its own.

    Returns:
        For each call, in order, its result, or the ``EdgertError`` that ``call`` would raise: one
        bad file does not hide what the others say.
    """
    children: list[_Child] = []
    try:
        for one in calls:
            children.append(_Child(one))  # noqa: PERF401  those started are killed if one fails
        _wait_all(children)
        return [child.outcome() for child in children]
    finally:
        for child in children:
            child.close()


def _wait_all(children: Sequence[_Child]) -> None:
    with selectors.DefaultSelector() as selector:
        for child in children:
            for stream in (child.answer, child.noise):
                selector.register(stream, selectors.EVENT_READ, child)
        waiting = set(children)
        while waiting:
            first_s = min(child.deadline_s for child in waiting)
            for key, _ in selector.select(max(0.0, first_s - time.monotonic())):
                if not key.data.read(key.fileobj):
                    selector.unregister(key.fileobj)
            now_s = time.monotonic()
            waiting = {child for child in waiting if not child.is_finished(now_s)}


@dataclass(eq=False, slots=True)
class _Child:
    """One child process, what it answered so far, and the tail of what it said besides."""

    call: Call
    process: subprocess.Popen[bytes] = field(init=False)
    answer: IO[bytes] = field(init=False)
    noise: IO[bytes] = field(init=False)
    deadline_s: float = field(init=False)
    received: bytearray = field(default_factory=bytearray)
    tail: bytes = b""
    has_answered: bool = False
    is_late: bool = False

    def __post_init__(self) -> None:
        self.deadline_s = time.monotonic() + self.call.timeout_s
        self.process = _start(Request(self.call.function, dict(self.call.arguments)))
        if self.process.stdout is None or self.process.stderr is None:
            raise AssertionError("pipes were asked for")
        self.answer, self.noise = self.process.stdout, self.process.stderr
        os.set_blocking(self.noise.fileno(), False)

    def read(self, stream: IO[bytes]) -> bool:
        """Take in what is there on one of the two streams; False once it has ended."""
        chunk = os.read(stream.fileno(), CHUNK_BYTES)
        if stream is self.noise:
            self.tail = (self.tail + chunk)[-TAIL_BYTES:]
        elif chunk and len(self.received) <= MAX_ANSWER_BYTES:
            self.received += chunk
        elif stream is self.answer:
            self.has_answered = True
        return bool(chunk)

    def is_finished(self, now_s: float) -> bool:
        """Return whether nothing more is to be expected of it."""
        if not self.has_answered and now_s >= self.deadline_s:
            self.is_late = True
            self.process.kill()
        return self.has_answered or self.is_late

    def outcome(self) -> Any:
        """Return the result, or the error that it becomes."""
        status = self._reap()
        if self.is_late:
            return self._fail(f"did not finish within {self.call.timeout_s:g} s and was ended")
        try:
            answer = msgspec.json.decode(bytes(self.received), type=Answer)
        except msgspec.DecodeError:
            return self._fail(self._how_it_ended(status))
        if answer.raised:
            return self._fail(answer.raised)
        if answer.error:
            return _rebuild(answer)
        return answer.result

    def _reap(self) -> int:
        try:
            return self.process.wait(EXIT_GRACE_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            return self.process.wait()

    def _how_it_ended(self, status: int) -> str:
        if status < 0:
            said = f"ended by signal {-status} ({signal.Signals(-status).name})"
        else:
            said = f"ended with exit code {status} without an answer"
        with contextlib.suppress(BlockingIOError):
            self.read(self.noise)
        lines = self.tail.decode(errors="replace").strip().splitlines()
        return f"{said}; it said last: {lines[-1].strip()}" if lines else said

    def _fail(self, fault: str) -> EdgertError:
        return self.call.error(self.call.place, fault)

    def close(self) -> None:
        """Leave nothing running and no fd open."""
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        self.answer.close()
        self.noise.close()


def _start(request: Request) -> subprocess.Popen[bytes]:
    stdin = os.memfd_create("edgert-request")
    try:
        os.write(stdin, msgspec.json.encode(request))
        os.lseek(stdin, 0, os.SEEK_SET)
        return subprocess.Popen(
            # -P: a file of the working directory must not stand in for a library.
            [sys.executable, "-P", "-m", "edgert.isolate.child", str(os.getpid())],
            stdin=stdin,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=_environment(),
        )
    finally:
        os.close(stdin)


def _environment() -> dict[str, str]:
    return {
        **os.environ,
        "OPENBLAS_NUM_THREADS": "1",
        "OMP_NUM_THREADS": "1",
        # The child finds the same modules as its caller, wherever those came from.
        "PYTHONPATH": os.pathsep.join(path or str(Path.cwd()) for path in sys.path),
    }


def _rebuild(answer: Answer) -> EdgertError:
    """Return an error of the child as the same class with the same faults."""
    found = getattr(errors, answer.error, EdgertError)
    kind = found if isinstance(found, type) and issubclass(found, EdgertError) else EdgertError
    error = kind.__new__(kind)
    first = answer.faults[0]
    EdgertError.__init__(error, first.place, first.fault, first.mend)
    error.faults = answer.faults
    return error

"""One child that hosts an adapter, from the side of whoever asks it."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import sys
import time
from pathlib import Path

import msgspec

from edgert.coverage.adapter import Facts
from edgert.coverage.protocol import Ask, Reply, Spec

HELLO_WITHIN_S = 120.0
_TAIL_BYTES = 4096
_CHUNK_BYTES = 1 << 16
_EXIT_WITHIN_S = 5.0
_ONE_THREAD = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")
_decode_reply = msgspec.json.Decoder(Reply).decode
_decode_facts = msgspec.json.Decoder(Facts).decode


class Host:
    """A child process with an adapter in it.

    Attributes:
        facts: What the adapter says of itself.
        is_gone: Whether the process has ended, or is to be given up.
    """

    def __init__(self, spec: Spec) -> None:
        self._noise = os.memfd_create("edgert-coverage-noise")
        self._process = subprocess.Popen(
            [spec.python or sys.executable, "-P", "-m", "edgert.coverage.child", str(os.getpid())],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._noise,
            env=_environment(spec),
        )
        self._received = bytearray()
        self.is_gone = False
        line = self._exchange(msgspec.json.encode(spec), HELLO_WITHIN_S)
        self.facts = _decode_facts(line) if isinstance(line, bytes) else _unavailable(line)

    def ask(self, ask: Ask, timeout_s: float) -> Reply:
        """Ask for one piece of work; a child that does not answer in time is killed."""
        os.ftruncate(self._noise, 0)
        os.lseek(self._noise, 0, os.SEEK_SET)  # the child writes from the same offset
        line = self._exchange(msgspec.json.encode(ask), timeout_s)
        return _decode_reply(line) if isinstance(line, bytes) else line

    def kill(self) -> None:
        """End the process now; a thread that waits for it gets its end as the reply."""
        self.is_gone = True
        self._process.kill()

    def close(self) -> None:
        """Leave nothing running and no fd open."""
        self.is_gone = True
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None and not stream.closed:
                with contextlib.suppress(BrokenPipeError):
                    stream.close()
        try:
            self._process.wait(_EXIT_WITHIN_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        if self._noise >= 0:
            os.close(self._noise)
            self._noise = -1

    def _exchange(self, line: bytes, timeout_s: float) -> bytes | Reply:
        """Send a line and return the one that answers, or how there came to be none."""
        sent, answers = self._process.stdin, self._process.stdout
        if sent is None or answers is None:
            raise AssertionError("pipes were asked for")
        try:
            sent.write(line + b"\n")
            sent.flush()
        except BrokenPipeError:
            return self._ended()
        deadline_s = time.monotonic() + timeout_s
        poller = select.poll()
        poller.register(answers, select.POLLIN)
        while (end := self._received.find(b"\n")) < 0:
            if not poller.poll(max(0.0, deadline_s - time.monotonic()) * 1e3):
                self.kill()
                return Reply(timed_out=True)
            chunk = os.read(answers.fileno(), _CHUNK_BYTES)
            if not chunk:
                return self._ended()
            self._received += chunk
        answer = bytes(self._received[:end])
        del self._received[: end + 1]
        return answer

    def _ended(self) -> Reply:
        """Say how the process ended, with the last line it wrote."""
        self.is_gone = True
        try:
            status = self._process.wait(_EXIT_WITHIN_S)
        except subprocess.TimeoutExpired:  # it closed its output and goes on
            self._process.kill()
            status = self._process.wait()
        how = f"exit code {status}"
        if status < 0:
            how = f"signal {-status} ({signal.Signals(-status).name})"
        size = os.lseek(self._noise, 0, os.SEEK_END)
        tail = os.pread(self._noise, _TAIL_BYTES, max(0, size - _TAIL_BYTES))
        lines = tail.decode(errors="replace").replace("\0", "").strip().splitlines()
        return Reply(crashed=f"{how}: {lines[-1].strip()}" if lines else how)


def _unavailable(reply: Reply) -> Facts:
    reason = reply.crashed or f"it did not start within {HELLO_WITHIN_S:g} s"
    return Facts(evidence="unavailable", versions={}, formats=(), computes=False, reason=reason)


def _environment(spec: Spec) -> dict[str, str]:
    """Return where the child finds edgert; in another environment nothing else of this one."""
    here = str(Path(__file__).resolve().parents[2])
    paths = [here] if spec.python else [path or str(Path.cwd()) for path in sys.path]
    return {
        **os.environ,
        **dict.fromkeys(_ONE_THREAD, "1"),
        "PYTHONPATH": os.pathsep.join(paths),
    }

"""The child that hosts an adapter: reads a line, asks, answers with a line.

It runs in the environment the adapter lives in, which need not be edgert's own: of edgert it
imports only rooms that need numpy and msgspec.
"""

from __future__ import annotations

import importlib
import os
import resource
import sys
from pathlib import Path
from typing import BinaryIO

import msgspec

from edgert.coverage import values
from edgert.coverage.adapter import Adapter
from edgert.coverage.compare import compare
from edgert.coverage.protocol import Ask, Reply, Spec
from edgert.processes import die_with_parent

_MOST_SAID = 2000


def main() -> None:
    """Serve until standard input ends."""
    die_with_parent(int(sys.argv[1]))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    answers = _set_answers_aside()
    lines = sys.stdin.buffer
    spec = msgspec.json.decode(lines.readline(), type=Spec)
    if spec.memory_bytes:
        resource.setrlimit(resource.RLIMIT_DATA, (spec.memory_bytes, spec.memory_bytes))
    module, _, name = spec.target.partition(":")
    adapter: Adapter = getattr(importlib.import_module(module), name)(spec.device, spec.options)
    _send(answers, adapter.facts())
    asked = msgspec.json.Decoder(Ask)
    for line in lines:
        _send(answers, reply(adapter, asked.decode(line)))
    # Without the interpreter's end: a driver's destructor could crash or hang.
    os._exit(0)


def reply(adapter: Adapter, ask: Ask) -> Reply:
    """Ask an adapter, and compare what it computed."""
    try:
        answer, outputs = adapter.ask(ask.work)
    except Exception as error:  # noqa: BLE001  whatever a vendor's library raises is the result
        return Reply(raised=said(error))
    if ask.keep and outputs:
        values.save(Path(ask.keep), outputs)
    if not ask.expected or not outputs:
        return Reply(answer=answer)
    expected = values.load(Path(ask.expected))
    found = compare(expected, outputs, ask.rtol, ask.atol, ask.steps)
    return Reply(answer=answer, difference=found)


def said(error: BaseException) -> str:
    """Return an exception on one line."""
    text = " ".join(str(error).split())[:_MOST_SAID]
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def _set_answers_aside() -> BinaryIO:
    """Keep standard output for answers, and let what libraries print go to standard error."""
    answers = os.fdopen(os.dup(1), "wb", buffering=0)
    os.dup2(2, 1)
    return answers


def _send(answers: BinaryIO, message: msgspec.Struct) -> None:
    answers.write(msgspec.json.encode(message) + b"\n")


if __name__ == "__main__":
    main()

"""What a run does when ``edgert ctl`` asks for it: a table of verbs behind one socket."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import msgspec

from edgert.control.commands import CommandServer
from edgert.control.requests import (
    Done,
    Drain,
    FromRun,
    GetStatus,
    SetLogLevel,
    StatusIs,
    ToRun,
)
from edgert.logs import set_level
from edgert.runtime.accounts import total_counts
from edgert.runtime.status import Pace, status_of
from edgert.runtime.supervisor import Supervisor
from edgert.runtime.waits import Waits

log = logging.getLogger("edgert.control")

_AT_MOST_A_STEP = 16  # then the run itself is looked after, whoever asks how much


class Commands:
    """Answers what is asked of a run.

    Args:
        supervisor: Of the run.
    """

    def __init__(self, supervisor: Supervisor) -> None:
        self._supervisor = supervisor
        self._server = CommandServer(supervisor.folder.command_socket)
        self._pace = Pace()
        self._waits = Waits(supervisor.plan, supervisor.ledger)
        supervisor.watch(self._server.fd)

    def step(self) -> bool:
        """Deal with what was asked; whether there may be more."""
        supervisor = self._supervisor
        now_s = time.monotonic()
        self._pace.look(
            now_s, total_counts(supervisor.ledger, supervisor.plan.streams)["processed"]
        )
        if supervisor.started_s:
            self._waits.step(now_s)
        for _ in range(_AT_MOST_A_STEP):
            received = self._server.receive_nowait()
            if received is None:
                return False
            client, message = received
            self._server.answer(client, self._ON_MESSAGE[type(message)](self, message))
        return True

    def close(self) -> None:
        """Close the socket."""
        self._server.close()

    def _status(self, _message: GetStatus) -> FromRun:
        supervisor = self._supervisor
        status = status_of(supervisor, self._pace, self._waits.said)
        return StatusIs(msgspec.to_builtins(status))

    def _on_drain(self, _message: Drain) -> FromRun:
        if self._supervisor.phase == "draining":
            return Done("it drains already")
        log.info("told to drain")
        self._supervisor.stop()
        return Done("the streams end, and everything drains")

    def _set_log_level(self, message: SetLogLevel) -> FromRun:
        set_level(message.level)
        self._supervisor.team.set_log_level(message.level)
        return Done(f"log level is {message.level}")

    _ON_MESSAGE: ClassVar[Mapping[type[ToRun], Callable[[Any, Any], FromRun]]] = {
        GetStatus: _status,
        Drain: _on_drain,
        SetLogLevel: _set_log_level,
    }

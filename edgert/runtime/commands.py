"""What a run does when ``edgert ctl`` asks for it: a table of verbs behind one socket."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import msgspec

from edgert.control.commands import CommandServer
from edgert.control.messages import SaidFault
from edgert.control.requests import (
    Done,
    Drain,
    FromRun,
    GetStatus,
    Refused,
    Reload,
    Restart,
    Set,
    SetLogLevel,
    StatusIs,
    ToRun,
    Underway,
)
from edgert.errors import EXIT_RUN_FAILED, EdgertError, Fault, UserError
from edgert.logs import set_level
from edgert.runtime.accounts import total_counts
from edgert.runtime.errands import Errand, Reloading, Restarting
from edgert.runtime.openings import Openings
from edgert.runtime.reload import Replan
from edgert.runtime.status import Pace, status_of
from edgert.runtime.supervisor import Supervisor
from edgert.runtime.waits import Waits

log = logging.getLogger("edgert.control")

_NEWS_EVERY_S = 1.0
_AT_MOST_A_STEP = 16  # then the run itself is looked after, whoever asks how much


class Commands:
    """Answers what is asked of a run.

    What takes a while is done one at a time; a reload that was asked for meanwhile comes next.

    Args:
        supervisor: Of the run.
        replan: Makes a plan of the file as it stands; None where there is no file.

    Attributes:
        reloads: How often a reload has begun.
        said: What became of the last one.
    """

    def __init__(self, supervisor: Supervisor, replan: Replan | None = None) -> None:
        self.reloads = 0
        self.said = ""
        self._supervisor = supervisor
        self._replan = replan
        self._errand: tuple[bytes | None, Errand] | None = None
        self._news_s = 0.0
        self._reload_is_due = False
        self._settings: tuple[str, ...] = ()
        self._wanted: tuple[str, ...] = ()
        self._server = CommandServer(supervisor.folder.command_socket)
        self._pace = Pace()
        self._waits = Waits(supervisor.plan, supervisor.ledger)
        self._openings = Openings()
        supervisor.watch(self._server.fd)

    @property
    def is_busy(self) -> bool:
        """Whether something is under way that takes a while."""
        return self._errand is not None or self._reload_is_due

    def reload(self) -> None:
        """Read the file again as soon as nothing else is under way: what SIGHUP asks for."""
        self._reload_is_due = True

    def step(self) -> bool:
        """Deal with what was asked; whether there may be more."""
        self._go_on()
        supervisor = self._supervisor
        now_s = time.monotonic()
        self._pace.look(
            now_s, total_counts(supervisor.ledger, supervisor.plan.streams)["processed"]
        )
        if supervisor.started_s:
            self._waits.step(now_s)
        self._openings.step(supervisor.members.values(), now_s)
        for _ in range(_AT_MOST_A_STEP):
            received = self._server.receive_nowait()
            if received is None:
                return False
            client, message = received
            answer = self._answer(client, message)
            if answer is not None:
                self._server.answer(client, answer)
        return True

    def _answer(self, client: bytes, message: ToRun) -> FromRun | None:
        """Return the answer; None where it comes later."""
        if type(message) in self._ON_MESSAGE:
            return self._ON_MESSAGE[type(message)](self, message)
        try:
            self._errand = (client, self._begin(message))
        except EdgertError as error:
            return _refused(error)
        return None

    def _begin(self, message: ToRun) -> Errand:
        supervisor = self._supervisor
        place = f"pipeline '{supervisor.plan.name}'"
        if self.is_busy:
            raise UserError(place, "is being changed already", "Try again in a moment")
        if supervisor.phase != "running":
            raise UserError(place, f"is {supervisor.phase}", "Look at its status, and try again")
        if isinstance(message, Restart):
            return Restarting(supervisor, message.stage)
        if self._replan is None:
            raise UserError(place, "was not started from a file", "Start it with edgert run FILE")
        if isinstance(message, Set):
            self._wanted = (*self._settings, f"{message.key}={message.value}")
            return Reloading(supervisor, self._replan, self._wanted, only=message.key)
        self.reloads += 1
        self._wanted = ()
        return Reloading(supervisor, self._replan, ())

    def _go_on(self) -> None:
        """Step what is under way; begin a reload that is due."""
        if self._errand is None and self._reload_is_due and self._supervisor.started_s:
            self._reload_is_due = False
            try:
                self._errand = (None, self._begin(Reload()))
            except EdgertError as error:
                self.reloads += 1
                self._end(None, _refused(error))
        if self._errand is None:
            return
        client, errand = self._errand
        try:
            said = errand.step()
        except EdgertError as error:
            self._errand = None
            self._end(client, _refused(error), is_partial=errand.is_partial)
        else:
            if said:
                self._errand = None
                if isinstance(errand, Reloading):
                    self._settings = self._wanted
                self._end(client, Done(said))
            elif client is not None:
                self._tell_news(client, errand.said)

    def _tell_news(self, client: bytes, said: str) -> None:
        """Let who waits for an errand know, now and then, that it goes on."""
        now_s = time.monotonic()
        if now_s >= self._news_s:
            self._news_s = now_s + _NEWS_EVERY_S
            self._server.answer(client, Underway(said))

    def _end(self, client: bytes | None, answer: FromRun, *, is_partial: bool = False) -> None:
        if isinstance(answer, Done):
            self.said = answer.said
            log.info("%s", self.said)
        elif isinstance(answer, Refused):
            faults = [Fault(fault.place, fault.fault, fault.mend) for fault in answer.faults]
            self.said = "\n".join(map(str, faults))
            how = "changed in part" if is_partial else "not changed, and goes on as before"
            log.error("%s: %s", how, self.said)
        if client is not None:
            self._server.answer(client, answer)

    def close(self) -> None:
        """Close the socket; whoever waits for an answer gets one."""
        if self._errand is not None and self._errand[0] is not None:
            place = f"pipeline '{self._supervisor.plan.name}'"
            mend = "Start it again: it takes its file as it stands then"
            fault = SaidFault(place, "has ended meanwhile", mend)
            self._server.answer(self._errand[0], Refused((fault,), EXIT_RUN_FAILED))
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


def _refused(error: EdgertError) -> Refused:
    faults = tuple(SaidFault(_where(fault), fault.fault, fault.mend) for fault in error.faults)
    return Refused(faults, error.exit_code)


def _where(fault: Fault) -> str:
    """Return the place of a fault with its line, where it has one."""
    if not fault.file:
        return fault.place
    line = f":{fault.line}:{fault.column}" if fault.line else ""
    return ": ".join(filter(None, (f"{fault.file}{line}", fault.place)))

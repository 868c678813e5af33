"""Log lines, the same from every process: short text or JSON on standard error, or the journal.

``auto`` is the journal where standard error leads there, as in a service of systemd, and else text.
"""

from __future__ import annotations

import json
import logging
import sys
import time
from typing import Any, TextIO

from edgert import journal
from edgert.redact import for_terminals, redact, redact_all

LEVELS = ("debug", "info", "warning", "error")
FORMATS = ("auto", "text", "json", "journal")

_ROOT = "edgert"
_PLAIN = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}


class TextFormatter(logging.Formatter):
    """``15:42:58 WARNING camera: message``, for people."""

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)s %(short)s: %(message)s", "%H:%M:%S")

    def format(self, record: logging.LogRecord) -> str:
        """Return one record, its traceback too, without credentials."""
        return for_terminals(super().format(record))

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802  logging's own name
        """Return the line without our own name before the logger's."""
        record.short = _short(record.name)
        return super().formatMessage(record)


class JsonFormatter(logging.Formatter):
    """``{"t": ..., "level": ..., "logger": ..., "message": ...}`` and what ``extra=`` gave."""

    def format(self, record: logging.LogRecord) -> str:
        """Return one line, whatever the message holds."""
        line: dict[str, Any] = {
            "t": _utc(record.created),
            "level": record.levelname.lower(),
            "logger": _short(record.name),
            "message": record.getMessage(),
        }
        line |= extras(record)
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return json.dumps(redact_all(line), ensure_ascii=False, default=str)


class JournalHandler(logging.Handler):
    """Records with their priority, and what ``extra=`` gave as fields (``EDGERT_STAGE=camera``).

    Where the journal is not there they go to standard error.
    """

    def __init__(self, address: str = journal.ADDRESS) -> None:
        super().__init__()
        self.setFormatter(logging.Formatter("%(message)s"))  # or basicConfig gives it one
        self._journal = journal.Journal(address)

    def emit(self, record: logging.LogRecord) -> None:
        """Send one record."""
        text = for_terminals(f"{_short(record.name)}: {self.format(record)}")
        fields: dict[str, str | int] = {
            "MESSAGE": text,
            "PRIORITY": journal.priority(record.levelno),
            "SYSLOG_IDENTIFIER": _ROOT,
            "LOGGER": record.name,
        }
        given = {
            f"{_ROOT}_{name}".upper(): redact(str(value)) for name, value in extras(record).items()
        }
        if not self._journal.send(given | fields):
            sys.stderr.write(f"{journal.marked(text, record.levelno)}\n")

    def close(self) -> None:
        """Close the socket."""
        self._journal.close()
        super().close()


def extras(record: logging.LogRecord) -> dict[str, Any]:
    """Return what ``extra=`` gave."""
    return {name: value for name, value in vars(record).items() if name not in _PLAIN}


def set_up(level: str = "info", style: str = "text", stream: TextIO | None = None) -> None:
    """Send log lines where they belong; called once in each process, replaces what was there.

    Libraries are heard from WARNING on, whatever ``level`` is.

    Args:
        level: One of ``LEVELS``: the least that is shown of edgert's own.
        style: One of ``FORMATS``.
        stream: Where the lines go; None stands for standard error.
    """
    if style == "auto":
        style = "journal" if stream is None and journal.leads_there() else "text"
    handler = JournalHandler() if style == "journal" else _stream_handler(style, stream)
    logging.basicConfig(level=logging.WARNING, handlers=[handler], force=True)
    set_level(level)


def style() -> str:
    """Return the form that log lines of this process have: ``text``, ``json`` or ``journal``."""
    for handler in logging.getLogger().handlers:
        if isinstance(handler, JournalHandler):
            return "journal"
        if isinstance(handler.formatter, JsonFormatter):
            return "json"
    return "text"


def set_level(level: str) -> None:
    """Show edgert's own lines from one of ``LEVELS`` on."""
    logging.getLogger(_ROOT).setLevel(level.upper())


def _stream_handler(style: str, stream: TextIO | None) -> logging.Handler:
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(JsonFormatter() if style == "json" else TextFormatter())
    return handler


def _short(name: str) -> str:
    return name.removeprefix(f"{_ROOT}.")


def _utc(seconds: float) -> str:
    whole = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds))
    return f"{whole}.{int(seconds % 1 * 1000):03d}Z"

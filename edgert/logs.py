"""Log lines on standard error, the same from every process: short text, or one JSON object each."""

from __future__ import annotations

import json
import logging
import sys
import time
from typing import Any, TextIO

LEVELS = ("debug", "info", "warning", "error")
FORMATS = ("text", "json")

_ROOT = "edgert"
_PLAIN = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}


class TextFormatter(logging.Formatter):
    """``15:42:58 WARNING camera: message``, for people."""

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)s %(short)s: %(message)s", "%H:%M:%S")

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
        line |= {name: value for name, value in vars(record).items() if name not in _PLAIN}
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return json.dumps(line, ensure_ascii=False, default=str)


def set_up(level: str = "info", style: str = "text", stream: TextIO | None = None) -> None:
    """Send log lines to standard error; called once in each process, replaces what was there.

    Libraries are heard from WARNING on, whatever ``level`` is.

    Args:
        level: One of ``LEVELS``: the least that is shown of edgert's own.
        style: One of ``FORMATS``.
        stream: Where the lines go; None stands for standard error.
    """
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(JsonFormatter() if style == "json" else TextFormatter())
    logging.basicConfig(level=logging.WARNING, handlers=[handler], force=True)
    logging.getLogger(_ROOT).setLevel(level.upper())


def _short(name: str) -> str:
    return name.removeprefix(f"{_ROOT}.")


def _utc(seconds: float) -> str:
    whole = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds))
    return f"{whole}.{int(seconds % 1 * 1000):03d}Z"

"""How the log lines of a worker reach the supervisor."""

from __future__ import annotations

import logging

from edgert.control.channel import WorkerChannel
from edgert.control.messages import Log
from edgert.logs import extras


class ToSupervisorHandler(logging.Handler):
    """Sends log records to the supervisor, the only process that writes to standard error."""

    def __init__(self, channel: WorkerChannel, worker: str) -> None:
        super().__init__()
        self._channel = channel
        self._worker = worker

    def emit(self, record: logging.LogRecord) -> None:
        """Send one record, with the traceback that it may have."""
        text = self.format(record)
        fields = {
            name: value if isinstance(value, int) else str(value)
            for name, value in extras(record).items()
        }
        self._channel.send(Log(self._worker, record.name, record.levelno, text, fields))

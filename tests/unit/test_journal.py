"""Records in the journal: their bytes, their priority, and where standard error leads."""

from __future__ import annotations

import logging
import os
import socket
import struct
from pathlib import Path

import pytest

from edgert import journal, logs


def decode(record: bytes) -> dict[str, str]:
    """Read a record as journald does."""
    fields = {}
    while record:
        line, _, record = record.partition(b"\n")
        name, equals, value = line.partition(b"=")
        if not equals:
            (length,) = struct.unpack_from("<Q", record)
            value, record = record[8 : 8 + length], record[9 + length :]
        fields[name.decode()] = value.decode()
    return fields


def test_a_record_keeps_line_breaks_and_equal_signs():
    fields = {"MESSAGE": "a\nb=c\n", "PRIORITY": 3, "X": "y=z"}
    assert decode(journal.encode(fields)) == {"MESSAGE": "a\nb=c\n", "PRIORITY": "3", "X": "y=z"}


def test_a_message_that_is_too_long_says_how_long_it_was():
    message = decode(journal.encode({"MESSAGE": "x" * 100_000}))["MESSAGE"]
    assert len(message) < 50_000
    assert message.endswith("... (100000 bytes)")


def test_every_line_of_a_text_carries_its_priority():
    assert journal.marked("a\nb", logging.ERROR) == "<3>a\n<3>b"
    assert [journal.priority(level) for level in (10, 20, 30, 50)] == [7, 6, 4, 3]


def test_where_standard_error_leads(tmp_path: Path):
    with (tmp_path / "log").open("w") as file:
        status = os.fstat(file.fileno())
        here = {"JOURNAL_STREAM": f"{status.st_dev}:{status.st_ino}"}
        assert journal.leads_there(file.fileno(), here)
        assert not journal.leads_there(file.fileno(), {"JOURNAL_STREAM": f"{status.st_dev}:1"})
        assert not journal.leads_there(file.fileno(), {"JOURNAL_STREAM": "nonsense"})
        assert not journal.leads_there(file.fileno(), {})
    assert not journal.leads_there(9999, here)


@pytest.fixture
def record() -> logging.LogRecord:
    extra = {"stage": "camera", "stream": "camera", "frame": 7, "worker": "camera"}
    logger = logging.getLogger("edgert.camera")
    return logger.makeRecord(logger.name, 30, "f", 1, "%d lost", (3,), None, extra=extra)


def test_a_log_line_becomes_fields(tmp_path: Path, record: logging.LogRecord):
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as journald:
        journald.bind(str(tmp_path / "journal"))
        handler = logs.JournalHandler(str(tmp_path / "journal"))
        handler.emit(record)
        fields = decode(journald.recv(65536))
        handler.close()
    assert fields == {
        "MESSAGE": "camera: 3 lost",
        "PRIORITY": "4",
        "SYSLOG_IDENTIFIER": "edgert",
        "LOGGER": "edgert.camera",
        "EDGERT_STAGE": "camera",
        "EDGERT_STREAM": "camera",
        "EDGERT_FRAME": "7",
        "EDGERT_WORKER": "camera",
    }


def test_a_journal_that_is_not_there_costs_no_line(
    tmp_path: Path, record: logging.LogRecord, capsys: pytest.CaptureFixture[str]
):
    handler = logs.JournalHandler(str(tmp_path / "journal"))
    handler.emit(record)
    handler.close()
    assert capsys.readouterr().err == "<4>camera: 3 lost\n"


def test_lines_that_a_full_journal_missed_are_counted(tmp_path: Path):
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as journald:
        journald.bind(str(tmp_path / "journal"))
        sender = journal.Journal(str(tmp_path / "journal"))
        sent = 0
        while not sender._missed:
            assert sender.send({"MESSAGE": "x"})
            sent += 1
        for _ in range(sent - 1):
            journald.recv(100)
        sender.send({"MESSAGE": "y"})
        assert decode(journald.recv(100)) == {"MESSAGE": "y", "EDGERT_MISSED": "1"}
        sender.close()

"""Log lines: short for people, one JSON object each for machines."""

from __future__ import annotations

import io
import json
import logging
from collections.abc import Callable, Iterator

import pytest

from edgert import logs


@pytest.fixture
def lines() -> Iterator[Callable[..., list[str]]]:
    """Set logging up on a stream of the test's own, log by a function, return the lines."""
    root, ours = logging.getLogger(), logging.getLogger("edgert")
    before = (root.level, root.handlers[:], ours.level)

    def log_by(function: Callable[[], None], level: str, style: str) -> list[str]:
        stream = io.StringIO()
        logs.set_up(level, style, stream)
        function()
        return stream.getvalue().splitlines()

    yield log_by
    root.setLevel(before[0])
    root.handlers[:] = before[1]
    ours.setLevel(before[2])


def test_text_names_the_stage_without_our_own_name(lines):
    (line,) = lines(
        lambda: logging.getLogger("edgert.camera").warning("%d lost", 3), "info", "text"
    )
    assert line[8:] == " WARNING camera: 3 lost"


def test_json_has_the_message_and_what_extra_gave(lines):
    def talk() -> None:
        logging.getLogger("edgert.camera").info("two\nlines", extra={"frame": 7, "at": object})

    (line,) = lines(talk, "info", "json")
    parsed = json.loads(line)
    assert parsed.pop("t").endswith("Z")
    assert parsed == {
        "level": "info",
        "logger": "camera",
        "message": "two\nlines",
        "frame": 7,
        "at": "<class 'object'>",
    }


def test_json_carries_a_traceback_in_its_one_line(lines):
    def talk() -> None:
        try:
            {}["missing"]
        except KeyError:
            logging.getLogger("edgert").exception("went wrong")

    (line,) = lines(talk, "info", "json")
    assert "KeyError: 'missing'" in json.loads(line)["exception"]


def test_the_level_is_ours_and_libraries_are_heard_from_warning_on(lines):
    def talk() -> None:
        for name in ("edgert.x", "library"):
            logging.getLogger(name).debug("debug")
            logging.getLogger(name).warning("warning")

    shown = [line[9:] for line in lines(talk, "debug", "text")]
    assert shown == ["DEBUG x: debug", "WARNING x: warning", "WARNING library: warning"]


def test_a_second_set_up_replaces_the_first(lines):
    def talk() -> None:
        logging.getLogger("edgert").error("once")

    lines(talk, "info", "text")
    assert len(lines(talk, "info", "text")) == 1

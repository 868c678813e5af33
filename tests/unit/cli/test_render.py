"""Tables line up, and a full disk is told."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import termios
from pathlib import Path

import pytest

from edgert.cli.render import show_json, table

REPOSITORY = Path(__file__).parents[3]


def test_columns_line_up_and_numbers_stand_to_the_right():
    assert table(["stage", "ms"], [["camera", 1.5], ["x", 12.25]]) == (
        "stage      ms\ncamera   1.50\nx       12.25"
    )


def test_a_table_without_rows_is_its_headers():
    assert table(["a", "b"], []) == "a  b"


def test_a_table_too_wide_for_a_terminal_folds_its_widest_texts():
    rows = [["person-ssdlite", "Finds people in a picture", 1], ["x", "y", 12]]
    assert table(["NAME", "WHAT", "N"], rows, width=36) == (
        "NAME            WHAT               N\n"
        "person-ssdlite  Finds people in    1\n"
        "                a picture\n"
        "x               y                 12"
    )
    whole = table(["NAME", "WHAT", "N"], rows)
    assert [table(["NAME", "WHAT", "N"], rows, width=n) for n in (0, 45)] == [whole, whole]
    assert table(["NAME", "WHAT", "N"], rows, width=20) == whole  # nothing is left of it else


@pytest.mark.parametrize("arguments", [("models", "list"), ("plan", "pipelines/record.yaml")])
def test_tables_fit_a_terminal_of_80_columns(arguments):
    lines = in_a_terminal(80, "-m", "edgert", *arguments).splitlines()
    tables = [line for line in lines if "  " in line.strip() and not line.startswith("  stage")]
    assert len(tables) > 5
    assert max(map(len, tables)) <= 80


def in_a_terminal(columns: int, *arguments: str) -> str:
    """Return what a Python program prints where its standard output is a terminal."""
    ours, its = os.openpty()
    with open(ours, "rb", buffering=0) as reader:  # noqa: PTH123  an fd
        termios.tcsetwinsize(its, (24, columns))
        program = subprocess.Popen([sys.executable, *arguments], stdout=its, cwd=REPOSITORY)
        os.close(its)
        said = b""
        with contextlib.suppress(OSError):  # how a terminal ends whose last writer has gone
            while data := reader.read(4096):
                said += data
        assert program.wait(timeout=30) == 0
    return said.decode().replace("\r\n", "\n")


def test_json_keeps_letters_as_they_are(capsys):
    show_json({"name": "Zürich"})
    assert capsys.readouterr().out == '{\n  "name": "Zürich"\n}\n'


def test_a_full_disk_is_told_without_a_traceback():
    code = """if True:
        from edgert.cli.errors import tell
        from edgert.cli.render import show
        try:
            show("x" * 100_000)
        except Exception as error:
            raise SystemExit(tell(error))
    """
    with open("/dev/full", "w") as full:  # noqa: PTH123  a device
        done = subprocess.run(
            [sys.executable, "-c", code],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
            timeout=30,
        )
    assert done.returncode == 1
    assert done.stderr.startswith("standard output: cannot be written: No space left on device.\n")


def test_a_standard_output_that_was_closed_has_no_width(monkeypatch):
    monkeypatch.setattr(sys, "stdout", None)
    assert table(["a"], [["x" * 200]]).splitlines()[1] == "x" * 200

"""Tables line up, and a full disk is told."""

from __future__ import annotations

import subprocess
import sys

from edgert.cli.render import show_json, table


def test_columns_line_up_and_numbers_stand_to_the_right():
    assert table(["stage", "ms"], [["camera", 1.5], ["x", 12.25]]) == (
        "stage      ms\ncamera   1.50\nx       12.25"
    )


def test_a_table_without_rows_is_its_headers():
    assert table(["a", "b"], []) == "a  b"


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

"""Who must act is told by the exit code; a traceback is for bugs of ours alone."""

from __future__ import annotations

import json
import subprocess
import sys

import click
import pytest

from edgert.cli.errors import tell
from edgert.errors import Fault, PipelineError, RunError, UserError
from edgert.logs import set_up


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        (UserError("model 'x'", "is missing", "Pull it"), 2, "model 'x': is missing. Pull it.\n"),
        (RunError("stage 'x'", "ended"), 1, "stage 'x': ended.\n"),
        (
            PipelineError([Fault("a", "one", "", "f.yaml", 1, 2), Fault("b", "two")]),
            2,
            "f.yaml:1:2: a: one.\nb: two.\n",
        ),
        (click.UsageError("wrong"), 2, "Error: wrong\n"),
        (KeyboardInterrupt(), 130, ""),
        (click.Abort(), 130, ""),
    ],
)
def test_an_error_is_told_without_a_traceback(capsys, error, code, said):
    assert tell(error) == code
    told = capsys.readouterr()
    assert told.err == said
    assert told.out == ""


@pytest.mark.usefixtures("edgert_logging")
def test_an_error_is_a_record_among_json_lines(capsys):
    set_up(style="json")
    assert tell(RunError("stage 'x'", "ended")) == 1
    said = json.loads(capsys.readouterr().err)
    assert (said["message"], said["level"], said["exit_code"]) == ("stage 'x': ended.", "error", 1)


def test_a_bug_is_told_with_its_traceback(capsys):
    with pytest.raises(KeyError) as caught:
        {}["missing"]
    assert tell(caught.value) == 70
    told = capsys.readouterr().err
    assert "Traceback" in told
    assert "KeyError: 'missing'" in told
    assert "a bug of edgert" in told


def test_a_broken_pipe_of_something_else_is_a_bug():
    code = "from edgert.cli.errors import tell; raise SystemExit(tell(BrokenPipeError()))"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=30
    )
    assert done.returncode == 70
    assert "a bug of edgert" in done.stderr


def test_an_exit_goes_on():
    with pytest.raises(SystemExit):
        tell(SystemExit(3))

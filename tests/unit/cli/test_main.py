"""The command line as its users meet it: in a process of its own."""

from __future__ import annotations

import importlib
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from edgert.cli.main import COMMANDS, exit_code_of
from edgert.version import __version__
from tests.process.runs import wait_for

HEAVY = {"numpy", "cv2", "yaml", "pydantic", "zmq", "msgspec", "rich", "openvino", "onnxruntime"}


def imported_by(*arguments: str) -> set[str]:
    done = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "edgert", *arguments],
        capture_output=True,
        text=True,
        check=True,
        timeout=30,
    )
    lines = [line for line in done.stderr.splitlines() if line.startswith("import time:")]
    return {line.rsplit("|", 1)[1].strip().partition(".")[0] for line in lines}


def test_version_is_printed(edgert):
    done = edgert("--version")
    assert (done.returncode, done.stdout, done.stderr) == (0, f"edgert {__version__}\n", "")


@pytest.mark.parametrize("arguments", [("--version",), ("--help",)])
def test_version_and_help_import_nothing_heavy(arguments):
    imported = imported_by(*arguments)
    assert "click" in imported
    assert not imported & HEAVY


def test_help_names_every_command(edgert):
    done = edgert("--help")
    assert done.returncode == 0
    for name, (_, said) in COMMANDS.items():
        assert f"  {name} " in done.stdout
        assert said in done.stdout


def hears(pid, number):
    """Whether a process has a handler of its own for a signal."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("SigCgt:"):
            return bool(int(line.split()[1], 16) & 1 << (number - 1))
    return False


def test_sigterm_ends_a_command_in_good_order():
    command = [sys.executable, "-m", "edgert", "devices"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        wait_for(lambda: hears(process.pid, signal.SIGTERM), "its handler")
        process.terminate()
        out, err = process.communicate(timeout=60)
    assert (process.returncode, out) == (143, b"")
    assert b"Traceback" not in err


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_of_the_table_is_there(name):
    command = importlib.import_module(COMMANDS[name][0]).command
    assert command.get_short_help_str()


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_helps(edgert, name):
    done = edgert(name, "--help")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith(f"Usage: edgert {name} ")
    cut = [line for line in done.stdout.splitlines()[1:] if line.endswith("...")]
    assert not cut, "what a subcommand does is cut off: shorten its first sentence"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["rnu"], "No such command 'rnu'. Did you mean 'run'?"),
        (["zzz"], "No such command 'zzz'. There are: run, check,"),
        (["--wrong"], "No such option"),
    ],
)
def test_wrong_usage_ends_with_2_and_names_the_mend(edgert, arguments, said):
    done = edgert(*arguments)
    assert done.returncode == 2
    assert said in done.stderr
    assert done.stdout == ""


def test_no_arguments_show_the_help(edgert):
    done = edgert()
    assert done.returncode == 2
    assert "Commands:" in done.stdout + done.stderr


def test_a_reader_that_went_away_ends_it_quietly():
    read_end, write_end = os.pipe()
    os.close(read_end)
    with os.fdopen(write_end, "w") as nobody_reads:
        done = subprocess.run(
            [sys.executable, "-m", "edgert", "--help"],
            stdout=nobody_reads,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
            timeout=30,
        )
    assert (done.returncode, done.stderr) == (141, "")


def test_exit_code_of_runs_in_this_process_too(capsys):
    assert exit_code_of(["--version"]) == 0
    assert capsys.readouterr().out == f"edgert {__version__}\n"


@pytest.mark.parametrize("closed", [(0,), (1,), (2,), (0, 1, 2)])
def test_numbers_that_the_caller_has_closed_are_not_given_to_others(closed):
    """A pipe of a run on number 2 would receive what libraries print."""
    code = """if True:
        import os, sys
        for number in map(int, sys.argv[1:]):
            os.close(number)
        from edgert.processes import occupy_standard_numbers
        occupy_standard_numbers()
        said = [number for number in (0, 1, 2) if os.get_inheritable(number)]
        sys.exit(0 if said == [0, 1, 2] and min(os.pipe()) > 2 else 1)
    """
    command = [sys.executable, "-c", code, *map(str, closed)]
    subprocess.run(command, stdin=subprocess.DEVNULL, timeout=30, check=True)


def test_without_standard_error_a_command_works():
    command = ["sh", "-c", f"{sys.executable} -m edgert models list 2>&-"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
    assert done.returncode == 0
    assert done.stdout.startswith("NAME")

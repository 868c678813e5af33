"""How an error leaves the command line: in words on standard error, and as an exit code."""

from __future__ import annotations

import io
import logging
import os
import select
import sys
import traceback

import click

from edgert.cli.voice import say, say_error
from edgert.errors import EXIT_BUG, EdgertError
from edgert.processes import EXIT_INTERRUPTED, EXIT_TERMINATED, TerminatedError
from edgert.redact import redact
from edgert.version import __version__

EXIT_BROKEN_PIPE = 141  # 128 + SIGPIPE


def tell(error: BaseException) -> int:
    """Say what went wrong, for whoever must act, and return the exit code."""
    match error:
        case SystemExit():
            raise error
        case EdgertError():
            say_error(error)
            return error.exit_code
        case click.ClickException():
            shown = io.StringIO()
            error.show(shown)
            click.echo(redact(shown.getvalue()), err=True, nl=False)
            return error.exit_code
        case TerminatedError():
            say("ended by SIGTERM before it was done", logging.WARNING)
            return EXIT_TERMINATED
        case KeyboardInterrupt() | click.Abort():
            return EXIT_INTERRUPTED
        case BrokenPipeError() if _nobody_reads_stdout():
            _silence_stdout()
            return EXIT_BROKEN_PIPE
    return _tell_bug(error)


def _tell_bug(error: BaseException) -> int:
    click.echo(redact("".join(traceback.format_exception(error))), err=True, nl=False)
    click.echo(
        f"edgert {__version__}: this is a bug of edgert, not of your input. Please report it with "
        "the lines above, the command line and the pipeline file.",
        err=True,
    )
    return EXIT_BUG


def _nobody_reads_stdout() -> bool:
    """Whether the reader of our standard output has gone (``edgert plan ... | head -1``)."""
    if sys.stdout is None:
        return False
    poll = select.poll()
    poll.register(1, 0)
    return any(event & select.POLLERR for _, event in poll.poll(0))


def _silence_stdout() -> None:
    """Keep the interpreter's last flush from complaining."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.close(nowhere)

"""How commands speak: to people on standard error, to programs in the form of their log lines."""

from __future__ import annotations

import contextlib
import logging
import sys

import click

from edgert import journal, logs
from edgert.errors import EdgertError

log = logging.getLogger("edgert")


def say(text: str, level: int = logging.INFO) -> None:
    """Say something to a person, on standard error; the level counts where that is the journal."""
    click.echo(journal.marked(text, level) if journal.leads_there() else text, err=True)


def keep_stdout() -> contextlib.AbstractContextManager[object]:
    """Let what a stage's own code prints here meanwhile go to standard error.

    Standard output has results or one JSON document; workers do the same (``runtime/zygote.py``).
    """
    return contextlib.redirect_stdout(sys.stderr)


def say_error(error: EdgertError) -> None:
    """Say why a command ends: once for each who listens, a record where log lines are records."""
    style = logs.style()
    if style != "text":
        log.error("%s", error, extra={"exit_code": error.exit_code})
    if style == "text" or (style == "journal" and not journal.leads_there()):
        say(str(error), logging.ERROR)

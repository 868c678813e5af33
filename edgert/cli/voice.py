"""How commands speak to people: on standard error, with a priority where that is the journal."""

from __future__ import annotations

import logging

import click

from edgert import journal


def say(text: str, level: int = logging.INFO) -> None:
    """Say something to a person, on standard error; the level counts where that is the journal."""
    click.echo(journal.marked(text, level) if journal.leads_there() else text, err=True)

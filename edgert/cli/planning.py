"""From a file on the command line to a planned pipeline, saying what is pulled and warned of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import click

from edgert.api import Pipeline
from edgert.cli.progress import StatusLine, pull_ticker
from edgert.models.reader import Models


def say(text: str) -> None:
    """Say something to a person, on standard error."""
    click.echo(text, err=True)


def plan_file(
    file: Path,
    variables: Mapping[str, str],
    settings: Sequence[str],
    *,
    pull: bool,
    line: StatusLine,
    profile: str | None = None,
) -> Pipeline:
    """Load, check and plan a file; pull its models where ``pull`` is set.

    Raises:
        EdgertError: Whatever is wrong with it.
    """
    reader = Models(file.parent, pull=pull, on_progress=pull_ticker(line, say))
    pipeline = Pipeline.load(
        file, variables=variables, settings=settings, models=reader, profile=profile
    )
    line.clear()
    for warning in pipeline.warnings:
        say(f"warning: {warning}")
    return pipeline

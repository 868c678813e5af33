"""From a file on the command line to a planned pipeline, saying what is pulled and warned of."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from pathlib import Path

from edgert.api import Pipeline
from edgert.cli.progress import StatusLine, pull_ticker
from edgert.cli.voice import keep_stdout, say
from edgert.models.reader import Models
from edgert.runtime.notify import Notifier


def plan_file(
    file: Path,
    variables: Mapping[str, str],
    settings: Sequence[str],
    *,
    pull: bool,
    line: StatusLine,
    profile: str | None = None,
    notifier: Notifier | None = None,
) -> Pipeline:
    """Load, check and plan a file; pull its models where ``pull`` is set.

    What is pulled is shown on ``line`` and told to ``notifier``.

    Raises:
        EdgertError: Whatever is wrong with it.
    """
    reader = Models(file.parent, pull=pull, on_progress=pull_ticker(line, say, notifier))
    with keep_stdout():
        pipeline = Pipeline.load(
            file, variables=variables, settings=settings, models=reader, profile=profile
        )
    line.clear()
    for warning in pipeline.warnings:
        say(f"warning: {warning}", logging.WARNING)
    return pipeline

"""Installs and removes pipelines: which files, in which order."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from edgert.service import units
from edgert.service.files import Keeper, Step
from edgert.service.layout import Layout

_ONLY_ROOT = 0o600


def install(
    layout: Layout, name: str, pipeline: str, program: Path, cores: Iterable[int], *, dry: bool
) -> list[Step]:
    """Write everything that a pipeline needs to be a service.

    Args:
        layout: Where.
        name: Of the service.
        pipeline: The text of its file.
        program: What is started.
        cores: Cores that it is kept to; none where it may use all.
        dry: Whether nothing is written.

    Returns:
        What was done, or would be.

    Raises:
        UserError: A file cannot be written.
    """
    keeper = Keeper(layout.root, layout.record, dry)
    for path, text in units.shared(layout, program).items():
        keeper.write(path, text)
    keeper.write(layout.pipeline(name), pipeline)
    keeper.offer(layout.environment(name), units.environment(name), _ONLY_ROOT)
    if used := tuple(cores):
        keeper.write(layout.cores(name), units.cores(used))
    else:
        keeper.remove(layout.cores(name))
    keeper.save()
    return keeper.steps


def remove(layout: Layout, name: str, *, dry: bool) -> list[Step]:
    """Remove what was installed for a pipeline, and what all share with the last one.

    Files that were edited stay, and the user and its directories.
    """
    keeper = Keeper(layout.root, layout.record, dry)
    for path in (layout.pipeline(name), layout.environment(name), layout.cores(name)):
        keeper.remove(path)
    left = set(layout.names()) - {name}
    if not left:
        for path in list(keeper.files()):
            keeper.remove(path)
    keeper.save()
    return keeper.steps

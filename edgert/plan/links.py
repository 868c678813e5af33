"""The edges that a stage's inputs name, and how an edge is called."""

from __future__ import annotations

from collections.abc import Iterator

from edgert.pipeline.spec import LinkSpec, StageSpec


def links_of(stage: StageSpec) -> Iterator[LinkSpec]:
    """Yield every edge that a stage reads, in the order of the file."""
    for links in stage.inputs.values():
        yield from links


def drops(link: LinkSpec) -> bool:
    """Whether frames are dropped when the edge is full, instead of making the writer wait."""
    return link.queue.when_full != "block"


def edge_name(writer: str, output: str, reader: str, port: str) -> str:
    """Return for example ``camera.image->prepare.image``."""
    return f"{writer}.{output}->{reader}.{port}"

"""``edgert schema``: the JSON schema of pipeline files, with the kinds installed here."""

from __future__ import annotations

import click

from edgert.cli.render import show_json
from edgert.pipeline.schema import schema
from edgert.stages.registry import Registry


@click.command("schema")
def command() -> None:
    """Print the JSON schema of pipeline files, for editors."""
    show_json(schema(Registry()))

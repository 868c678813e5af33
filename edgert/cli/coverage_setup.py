"""``edgert coverage setup``: a vendor's tool in an environment of its own."""

from __future__ import annotations

import click

from edgert.coverage.environments import ENVIRONMENTS, make
from edgert.errors import UserError


@click.command()
@click.argument("name", type=click.Choice(sorted(ENVIRONMENTS)))
@click.option("--yes", is_flag=True, help="Accept the licence without being asked.")
def command(*, name: str, yes: bool) -> None:
    """Install what the adapter NAME needs into an environment of its own.

    It comes from the Python package index, by pip with your own settings, and goes to edgert's
    cache. Its licence is shown first.
    """
    environment = ENVIRONMENTS[name]
    click.echo(
        f"{name}: {environment.what}\n"
        f"packages: {', '.join(environment.packages)}\n"
        f"licence:  {environment.licence}\n"
        f"size:     about {environment.size_mb} MB, in {environment.folder}",
        err=True,
    )
    if environment.is_made:
        click.echo("It is set up already.", err=True)
        return
    if not yes and not _agrees():
        raise UserError(f"adapter {name}", "its licence was not accepted", "Answer y, or add --yes")
    make(environment, lambda text: click.echo(text, err=True))
    click.echo("Done.", err=True)


def _agrees() -> bool:
    try:
        return click.confirm("Accept the licence and install?", err=True)
    except click.Abort:  # no terminal to ask on
        return False

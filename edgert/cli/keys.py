"""``edgert keys``: makes a pair of keys for results that leave this machine."""

from __future__ import annotations

import os
import re
from pathlib import Path

import click

from edgert.cli.render import show
from edgert.errors import UserError

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,99}")


@click.command("keys")
@click.argument("name")
@click.option(
    "--folder",
    type=click.Path(path_type=Path, file_okay=False, exists=True),
    default=Path(),
    help="Where the files are made; the current folder by default.",
)
def command(name: str, folder: Path) -> None:
    """Make a pair of keys: NAME.key_secret stays here, NAME.key is handed to the other side.

    They are for `curve:` of sink.zmq, and for its subscribers. Nothing is written over.
    """
    if not _NAME.fullmatch(name):
        raise UserError(f"name '{name}'", "is no plain name", "use letters, digits, `-` and `_`")
    public, secret = make_keys(name, folder)
    show(f"{public}: public, for the other side\n{secret}: secret, for this side alone")


def make_keys(name: str, folder: Path) -> tuple[Path, Path]:
    """Make both files, readable by this user alone.

    Raises:
        UserError: One of them is there, or they cannot be made.
    """
    from zmq.auth import create_certificates

    for file in (folder / f"{name}.key", folder / f"{name}.key_secret"):
        if file.exists() or file.is_symlink():
            raise UserError(f"file '{file}'", "is there already", "give another name")
    before = os.umask(0o077)
    try:
        public, secret = create_certificates(folder, name)
    except OSError as error:
        fault = f"nothing can be made there: {error.strerror}"
        raise UserError(f"folder '{folder}'", fault, "give another `--folder`") from error
    finally:
        os.umask(before)
    return Path(public), Path(secret)

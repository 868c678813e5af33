"""Options that several commands share."""

from __future__ import annotations

import functools
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from edgert import logs

Function = Callable[..., Any]

# ``sample:bikes``, ``rtsp://...``, ``tcp://...``: not a path.
_SCHEME = re.compile(r"^[A-Za-z][A-Za-z0-9+.-]*:")
_OVERRIDE = re.compile(r"^([^.=\s]+\.[^=\s]+)=(.*)$", re.DOTALL)


def pipeline_options(function: Function) -> Function:
    """Add FILE, ``--set``, ``--input`` and ``--output`` to a command.

    It gets ``file: Path``, ``overrides: dict[str, str]`` (``stage.key`` -> the text as written)
    and ``environment: dict[str, str]``, ours with EDGERT_INPUT and EDGERT_OUTPUT as they were
    given.
    """

    @click.argument("file", type=click.Path(path_type=Path))
    @click.option(
        "--set",
        "overrides",
        metavar="STAGE.KEY=VALUE",
        multiple=True,
        callback=_split_overrides,
        help="Change a key of the file; may be given several times.",
    )
    @click.option(
        "--input",
        "read_from",
        metavar="WHAT",
        help="What is read, a path or URL: sets EDGERT_INPUT for the file.",
    )
    @click.option(
        "--output",
        "write_to",
        metavar="WHERE",
        help="Where results go, a path or - : sets EDGERT_OUTPUT for the file.",
    )
    @functools.wraps(function)
    def command(read_from: str | None, write_to: str | None, **rest: Any) -> Any:
        environment = _environment(read_from, write_to)
        return function(environment=environment, **rest)

    return command


def log_options(function: Function) -> Function:
    """Add ``--log-level`` and ``--log-format`` to a command.

    Logging of this process is set up before it runs; it gets ``log_level: str`` and
    ``log_format: str`` to hand on to workers.
    """

    @click.option(
        "--log-level",
        type=click.Choice(logs.LEVELS, case_sensitive=False),
        default="info",
        show_default=True,
        help="The least important log lines that are shown.",
    )
    @click.option(
        "--log-format",
        type=click.Choice(logs.FORMATS),
        default="text",
        show_default=True,
        help="How log lines look on standard error.",
    )
    @functools.wraps(function)
    def command(log_level: str, log_format: str, **rest: Any) -> Any:
        logs.set_up(log_level, log_format)
        return function(log_level=log_level, log_format=log_format, **rest)

    return command


def _split_overrides(
    context: click.Context, parameter: click.Parameter, written: tuple[str, ...]
) -> dict[str, str]:
    matches = [_OVERRIDE.match(text) for text in written]
    for text, match in zip(written, matches, strict=True):
        if match is None:
            message = f"{text!r} is not STAGE.KEY=VALUE, for example --set people.threshold=0.5"
            raise click.BadParameter(message, context, parameter)
    return {match[1]: match[2] for match in matches if match is not None}


def _environment(read_from: str | None, write_to: str | None) -> dict[str, str]:
    environment = dict(os.environ)
    if read_from is not None:
        environment["EDGERT_INPUT"] = _from_here(read_from)
    if write_to is not None:
        environment["EDGERT_OUTPUT"] = _from_here(write_to)
    return environment


def _from_here(text: str) -> str:
    """Make a path of the command line absolute: paths in a file start from the file's folder."""
    if not text or text == "-" or _SCHEME.match(text):
        return text
    return str(Path.cwd() / text)

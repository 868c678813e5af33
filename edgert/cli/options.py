"""Options that several commands share."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import click

from edgert import logs
from edgert.pipeline.substitute import command_line_variables
from edgert.redact import redact
from edgert.stages import code

Function = Callable[..., Any]


def pipeline_options(function: Function) -> Function:
    """Add FILE and what ``change_options`` adds to a command; it gets ``file: Path`` besides."""
    return click.argument("file", type=click.Path(path_type=Path))(change_options(function))


def change_options(function: Function) -> Function:
    """Add ``--set``, ``--input`` and ``--output`` to a command.

    It gets what ``edgert.pipeline.load`` takes: ``settings: tuple[str, ...]`` and ``variables:
    dict[str, str]``, in which EDGERT_INPUT and EDGERT_OUTPUT stand if they were given.
    """

    @click.option(
        "--set",
        "settings",
        metavar="STAGE.KEY=VALUE",
        multiple=True,
        help="Change a key of the file. Repeatable.",
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
        help="Where results go, a path or `-`: sets EDGERT_OUTPUT for the file.",
    )
    @functools.wraps(function)
    def command(read_from: str | None, write_to: str | None, **rest: Any) -> Any:
        _warn_of_credentials([read_from or "", *rest["settings"]])
        return function(variables=command_line_variables(read_from, write_to), **rest)

    return command


def _warn_of_credentials(texts: Sequence[str]) -> None:
    if any(redact(text) != text for text in texts):
        click.echo(
            "warning: the command line has credentials, which every user of this machine can see. "
            "Write ${CAM_PASSWORD} into the file and set that variable.",
            err=True,
        )


def profile_option(function: Function) -> Function:
    """Add ``--profile`` to a command; it gets ``profile: str | None``."""
    option = click.option(
        "--profile",
        metavar="NAME|PATH",
        help="Device profile instead of the one that matches this machine.",
    )
    return option(function)


def code_option(function: Function) -> Function:
    """Add ``--allow-code`` to a command; modules of those folders can be named afterwards."""
    option = click.option(
        "--allow-code",
        metavar="FOLDER",
        multiple=True,
        expose_value=False,
        callback=lambda _context, _parameter, folders: code.allow(folders, "--allow-code"),
        help="Let `kind: module:Class` name modules of this folder, too (EDGERT_CODE).",
    )
    return option(function)


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
        default="auto",
        show_default=True,
        help="How log lines look; auto: fields of the journal in a service, else text.",
    )
    @functools.wraps(function)
    def command(log_level: str, log_format: str, **rest: Any) -> Any:
        logs.set_up(log_level, log_format)
        return function(log_level=log_level, log_format=log_format, **rest)

    return command


def shape_option(function: Function) -> Function:
    """Add ``--shape`` to a command; it gets ``shapes: tuple[str, ...]``."""
    option = click.option(
        "--shape",
        "shapes",
        multiple=True,
        help="Sizes for an input that a model leaves open: images=1,3,640,640. Repeatable.",
    )
    return option(function)


def report_option(formats: str) -> Callable[[Function], Function]:
    """Return what adds ``--report`` to a command; it gets ``report_files: tuple[Path, ...]``."""
    return click.option(
        "--report",
        "report_files",
        type=click.Path(dir_okay=False, path_type=Path),
        multiple=True,
        help=f"File for the report: {formats}. Repeatable.",
    )

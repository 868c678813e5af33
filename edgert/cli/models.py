"""``edgert models``: list, pull, add and inspect models and samples."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from edgert.cli.render import show, show_json, table
from edgert.errors import UserError

if TYPE_CHECKING:
    from edgert.models.catalog import Item
    from edgert.models.inspect import ModelReport
    from edgert.models.pull import OnProgress

LIST_SCHEMA = "edgert.models/1"
UNITS = ("B", "kB", "MB", "GB")


@click.group()
def command() -> None:
    """List, pull and inspect models.

    A model is given as a name of the catalog, as a file, or as https://...#sha256=HEX.
    """


@command.command("list")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def list_models(*, as_json: bool) -> None:
    """Show the models and samples that are known by name."""
    from edgert.models.cache import Cache
    from edgert.models.catalog import load_catalog

    catalog, cache = load_catalog(), Cache()
    items = [*catalog.models.values(), *catalog.samples.values()]
    cached = {item.sha256 for item in items if cache.find(item.sha256, item.filename)}
    if as_json:
        rows = [_as_data(item, is_cached=item.sha256 in cached) for item in items]
        show_json({"schema": LIST_SCHEMA, "items": rows})
        return
    headers = ("NAME", "LICENCE", "SIZE", "CACHED", "WHAT")
    show(table(headers, [_as_row(item, is_cached=item.sha256 in cached) for item in items]))


@command.command()
@click.argument("names", metavar="NAME...", nargs=-1, required=True)
def pull(names: tuple[str, ...]) -> None:
    """Fetch models and samples into the cache; print where they are."""
    from edgert.models.cache import Cache
    from edgert.models.pull import find_item
    from edgert.models.pull import pull as fetch

    items = [find_item(name) for name in names]
    cache = Cache()
    with progress_bar() as on_progress:
        for item in items:
            show(str(fetch(item, cache, on_progress)))


@command.command()
@click.argument("name")
@click.argument("file", type=click.Path(path_type=Path))
def add(name: str, file: Path) -> None:
    """Put FILE into the cache as NAME, for machines without a network.

    Its checksum must be that of NAME.
    """
    from edgert.models.cache import Cache
    from edgert.models.pull import add as put
    from edgert.models.pull import find_item

    show(str(put(find_item(name), file, Cache())))


@command.command()
@click.argument("model")
@click.option(
    "--shape",
    "shapes",
    metavar="INPUT=N,N,...",
    multiple=True,
    help="Sizes for an input, an open one or another. Repeatable.",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def inspect(model: str, shapes: tuple[str, ...], *, as_json: bool) -> None:
    """Show inputs, outputs, operators, parameters and MACs of MODEL."""
    import msgspec

    from edgert.models.inspect import inspect as take_apart
    from edgert.models.reader import Models

    fixed = dict(map(_parse_shape, shapes))
    with progress_bar() as on_progress:
        located = Models().locate(model, pull=True, on_progress=on_progress)
    report = take_apart(located, fixed)
    if as_json:
        show_json(msgspec.to_builtins(report))
    else:
        show(_as_text(report))


@contextmanager
def progress_bar() -> Iterator[OnProgress]:
    """Give a callback that draws a bar on standard error while something is pulled.

    Nothing is drawn where standard error is not a terminal.
    """
    from edgert.models.pull import say_nothing

    if sys.stderr is None or not sys.stderr.isatty():
        yield say_nothing
        return
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TransferSpeedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn())
    with Progress(*columns, TransferSpeedColumn(), console=Console(stderr=True)) as progress:
        tasks: dict[str, Any] = {}

        def on_progress(name: str, done: int, total: int) -> None:
            if name not in tasks:
                tasks[name] = progress.add_task(f"pulling {name}", total=None)
            progress.update(tasks[name], completed=done, total=total or None)

        yield on_progress


def _parse_shape(text: str) -> tuple[str, list[int]]:
    name, _, sizes = text.rpartition("=")
    try:
        fixed = [int(size) for size in sizes.split(",")]
    except ValueError:
        fixed = []
    if not name or not fixed or min(fixed) < 1:
        raise UserError(f"--shape '{text}'", "does not say INPUT=N,N", "Write images=1,3,640,640")
    return name, fixed


def _as_data(item: Item, *, is_cached: bool) -> dict[str, Any]:
    return {
        "name": item.said,
        "description": item.description,
        "licence": item.licence,
        "size_bytes": item.size_bytes,
        "sha256": item.sha256,
        "cached": is_cached,
    }


def _as_row(item: Item, *, is_cached: bool) -> tuple[str, ...]:
    cached = "yes" if is_cached else "no"
    return (item.said, item.licence, _bytes(item.size_bytes), cached, item.description)


def _bytes(size: float) -> str:
    for unit in UNITS[:-1]:
        if size < 1000:
            return f"{size:.3g} {unit}"
        size /= 1000
    return f"{size:.3g} {UNITS[-1]}"


def _count(number: int | None) -> str:
    if number is None:
        return "not known"
    for factor, unit in ((10**9, "G"), (10**6, "M"), (10**3, "k")):
        if number >= factor:
            return f"{number / factor:.3g} {unit} ({number})"
    return str(number)


def _as_text(report: ModelReport) -> str:
    rows = [
        ("model", report.name),
        ("file", f"{report.path} ({_bytes(report.size_bytes)})"),
        ("format", report.format),
        ("sha256", report.sha256),
        ("catalog", f"{report.catalog} ({report.licence})" if report.catalog else "not in it"),
        ("producer", report.producer),
        ("opset", ", ".join(f"{domain} {version}" for domain, version in report.opset.items())),
        *(("input", f"{name} {spec}") for name, spec in report.inputs.items()),
        *(("output", f"{name} {spec}") for name, spec in report.outputs.items()),
        ("operators", ", ".join(f"{kind} {n}" for kind, n in report.operators.items())),
        ("parameters", _count(report.parameters)),
        ("MACs", _count(report.macs)),
        *(("note", note) for note in report.notes),
    ]
    return "\n".join(f"{name:<10}  {said}" for name, said in rows if said)

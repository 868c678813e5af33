"""A comparison as a file: a self-contained page, JSON or Markdown."""

from __future__ import annotations

import html
from collections.abc import Callable, Iterable, Iterator, Sequence

import msgspec

from edgert.coverage.comparison import said
from edgert.coverage.comparison.chart import sparkline, svg
from edgert.coverage.comparison.record import Comparison

_COLUMNS = 72
_STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 70rem; padding: 0 1rem;
  color: #1c1e21; background: #fff; }
table { border-collapse: collapse; margin: .5rem 0 1.5rem; font-size: 13px; }
th, td { border: 1px solid #d0d4da; padding: .25rem .5rem; text-align: left; }
th { background: #f0f2f5; } dt { font-weight: 600; } dd { margin: 0 0 .4rem; }
.differs td:last-child { font-weight: 700; color: #9c1c1c; }
svg { width: 100%; height: auto; font: 11px system-ui, sans-serif; }
svg .grid { stroke: #d0d4da; } svg .noise { fill: none; stroke: #8a94a3; }
svg circle { fill: #2b6cb0; } svg rect.differs { fill: #9c1c1c; }
svg .first { stroke: #9c1c1c; stroke-dasharray: 4 3; }
@media print { body { margin: 0; max-width: none; } }
"""


def as_json(found: Comparison) -> str:
    """Return the whole record."""
    return msgspec.json.format(msgspec.json.encode(found), indent=1).decode() + "\n"


def markdown(found: Comparison) -> str:
    """Return the comparison as a page of documentation has it."""
    return "\n".join(_markdown_lines(found)) + "\n"


def page(found: Comparison) -> str:
    """Return one HTML file without a script, a network or another file."""
    title = html.escape(said.headline(found))
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width">'
        f"<title>{title}</title><style>{_STYLE}</style></head><body><h1>{title}</h1>"
        f"{''.join(_parts(found))}</body></html>\n"
    )


FORMATS: dict[str, Callable[[Comparison], str]] = {
    ".html": page,
    ".json": as_json,
    ".md": markdown,
}


def _parts(found: Comparison) -> Iterator[str]:
    terms = "".join(
        f"<dt>{html.escape(name)}</dt><dd>{html.escape(text)}</dd>"
        for name, text in said.facts(found)
    )
    yield f"<dl>{terms}</dl><h2>Outputs, the worst of all samples</h2>"
    yield _html_table(said.OUTPUT_HEADERS, said.output_rows(found))
    if found.boxes is not None:
        yield f"<h2>Boxes</h2><p>{html.escape(said.boxes_said(found.boxes))}</p>"
    if found.bisected is not None:
        text = html.escape(said.bisected_said(found.bisected))
        yield f"<h2>The smallest sub-model</h2><p>{text}</p>"
    if found.layers is not None:
        yield f"<h2>Noise along the depth</h2><p>{html.escape(said.first_said(found))}. "
        yield f"Sample: {html.escape(found.layers.sample)}. Squares are beyond tolerance.</p>"
        yield svg(found.layers)
        yield "<h2>The layers with the most noise</h2>"
        yield _html_table(said.LAYER_HEADERS, said.layer_rows(said.worst_layers(found)))
        yield "<details><summary>Every layer</summary>"
        yield _html_table(said.LAYER_HEADERS, said.layer_rows(found.layers.layers))
        yield "</details>"
    if len(found.samples) > 1:
        yield "<details><summary>Every sample</summary>"
        yield _html_table(said.SAMPLE_HEADERS, said.sample_rows(found)) + "</details>"


def _html_table(headers: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    head = "".join(f"<th>{html.escape(header.lower())}</th>" for header in headers)
    body = "".join(
        f'<tr class="{"differs" if row[-1] == "differs" else ""}">'
        + "".join(f"<td>{html.escape(text)}</td>" for text in row)
        + "</tr>"
        for row in rows
    )
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _markdown_lines(found: Comparison) -> Iterator[str]:
    yield from (f"# {said.headline(found)}", "")
    yield from (f"- {name}: {text}" for name, text in said.facts(found))
    yield from ("", *_markdown_table(said.OUTPUT_HEADERS, said.output_rows(found)))
    if found.boxes is not None:
        yield from ("", f"Boxes: {said.boxes_said(found.boxes)}.")
    if found.bisected is not None:
        yield from ("", f"The {said.bisected_said(found.bisected)}.")
    if found.layers is not None:
        yield from ("", f"The {said.first_said(found)}. Noise along the depth:", "", "```text")
        yield from (sparkline(found.layers.layers, _COLUMNS), "```", "")
        rows = said.layer_rows(said.worst_layers(found))
        yield from _markdown_table(said.LAYER_HEADERS, rows)
    if len(found.samples) > 1:
        rows = iter(said.sample_rows(found))
        yield from ("", *_markdown_table(said.SAMPLE_HEADERS, rows))


def _markdown_table(headers: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    yield f"| {' | '.join(header.lower() for header in headers)} |"
    yield f"|{'---|' * len(headers)}"
    for row in rows:
        yield f"| {' | '.join(text.replace('|', chr(92) + '|') for text in row)} |"

"""A picture of the error along the depth of a model: a line of blocks, and an SVG."""

from __future__ import annotations

import html
import math
from collections.abc import Sequence
from itertools import pairwise

from edgert.coverage.comparison.figures import noise_db
from edgert.coverage.comparison.record import Layer, Layers

# From where rounding of f32 is, to where there is as much noise as signal.
LOWEST_DB, HIGHEST_DB = -140.0, 0.0
_LEAST_SPAN_DB = 8.0
_BLOCKS = "▁▂▃▄▅▆▇█"
_WIDTH, _HEIGHT, _LEFT, _BOTTOM, _TOP = 960, 270, 56, 28, 24
_GRID_DB = (-120, -80, -40, 0)


def sparkline(layers: Sequence[Layer], columns: int) -> str:
    """Return the noise along the depth in at most ``columns`` blocks, and what they stand for.

    A block shows the worst of its layers; ``_`` none with noise, ``.`` none that was given.
    """
    groups = min(columns, len(layers))
    cuts = [len(layers) * number // groups for number in range(groups + 1)] if groups else [0]
    parts = [layers[start:end] for start, end in pairwise(cuts)]
    noisy = [_db(each) for each in layers if _is_noisy(each)]
    if not noisy:
        return f"{''.join(_block(part, 0, 1) for part in parts)}  no noise"
    low, high = min(noisy), max(*noisy, min(noisy) + _LEAST_SPAN_DB)
    blocks = "".join(_block(part, low, high) for part in parts)
    return f"{blocks}  {_BLOCKS[0]} {low:.0f} dB to {_BLOCKS[-1]} {high:.0f} dB"


def svg(found: Layers) -> str:
    """Return a drawing of the noise of every layer; those beyond tolerance are squares."""
    layers = [each for each in found.layers if each.figures.numerics != "not-run"]
    deepest = max((each.depth for each in found.layers), default=0) or 1

    def x(layer: Layer) -> float:
        return _LEFT + (_WIDTH - _LEFT - 16) * layer.depth / deepest

    line = " ".join(f"{x(each):.1f},{_y(_db(each)):.1f}" for each in layers)
    marks = "".join(
        _mark(each, x(each), is_first=each.figures.tensor == found.first) for each in layers
    )
    return (
        f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" '
        f'aria-label="Noise to signal of every layer in dB">{_grid()}'
        f'<polyline class="noise" points="{line}"/>{marks}</svg>'
    )


def _db(layer: Layer) -> float:
    return min(HIGHEST_DB, max(LOWEST_DB, noise_db(layer.figures)))


def _is_noisy(layer: Layer) -> bool:
    return layer.figures.numerics != "not-run" and noise_db(layer.figures) > -math.inf


def _block(layers: Sequence[Layer], low: float, high: float) -> str:
    if all(each.figures.numerics == "not-run" for each in layers):
        return "."
    noisy = [_db(each) for each in layers if _is_noisy(each)]
    if not noisy:
        return "_"
    share = (max(noisy) - low) / (high - low)
    return _BLOCKS[min(len(_BLOCKS) - 1, math.floor(share * len(_BLOCKS)))]


def _y(db: float) -> float:
    share = (HIGHEST_DB - db) / (HIGHEST_DB - LOWEST_DB)
    return _TOP + share * (_HEIGHT - _TOP - _BOTTOM)


def _grid() -> str:
    rows = "".join(
        f'<line class="grid" x1="{_LEFT}" x2="{_WIDTH}" y1="{_y(db):.1f}" y2="{_y(db):.1f}"/>'
        f'<text x="{_LEFT - 6}" y="{_y(db) + 4:.1f}" text-anchor="end">{db} dB</text>'
        for db in _GRID_DB
    )
    return f'{rows}<text x="{_WIDTH}" y="{_HEIGHT - 8}" text-anchor="end">depth</text>'


def _mark(layer: Layer, x: float, *, is_first: bool) -> str:
    y = _y(_db(layer))
    figures = layer.figures
    said = f"{layer.operator} {layer.node}: {figures.tensor}, {figures.numerics}, "
    said += f"noise {_db(layer):.1f} dB, max error {figures.max_error}"
    title = f"<title>{html.escape(said)}</title>"
    drawn = f'<circle cx="{x:.1f}" cy="{y:.1f}" r="2.5">{title}</circle>'
    if figures.numerics == "differs":
        drawn = (
            f'<rect class="differs" x="{x - 3.5:.1f}" y="{y - 3.5:.1f}" width="7" height="7">'
            f"{title}</rect>"
        )
    if is_first:
        side = "end" if x > _WIDTH / 2 else "start"
        drawn += (
            f'<line class="first" x1="{x:.1f}" x2="{x:.1f}" y1="{_TOP}" y2="{_HEIGHT - _BOTTOM}"/>'
            f'<text x="{x:.1f}" y="{_TOP - 8}" text-anchor="{side}">'
            f"first: {html.escape(layer.operator)}</text>"
        )
    return drawn

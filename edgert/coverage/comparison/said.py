"""A comparison in words and rows: what the terminal, the page and Markdown have in common."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from edgert.coverage.comparison.record import Bisected, Boxes, Comparison, Figures, Layer, Side

FIGURES = ("COSINE", "MAX ERROR", "MEAN ERROR", "SNR", "NUMERICS")
OUTPUT_HEADERS = ("OUTPUT", *FIGURES)
LAYER_HEADERS = ("DEPTH", "NODE", "OPERATOR", "TENSOR", *FIGURES)
SAMPLE_HEADERS = ("SAMPLE", "OUTPUT", *FIGURES)


def headline(found: Comparison) -> str:
    """Return what came of it in one sentence."""
    pair = f"{found.candidate.device} against {found.reference.device}"
    count = len(found.samples)
    bad = sum(sample.numerics != "equal" for sample in found.samples)
    samples = f"{count} sample{'s' * (count > 1)}"
    if not bad:
        return f"{found.model}: {pair}: equal within tolerance on {samples}"
    return f"{found.model}: {pair}: {found.numerics} on {bad} of {samples}"


def side_said(side: Side) -> str:
    """Return a device with its versions, options and evidence."""
    versions = ", ".join(f"{name} {version}" for name, version in side.versions.items())
    options = "".join(f", {key}={value}" for key, value in side.options.items())
    return f"{side.device}{options} ({versions}; evidence: {side.evidence})"


def facts(found: Comparison) -> list[tuple[str, str]]:
    """Return what a reader must know beside the figures."""
    return [
        ("reference", side_said(found.reference)),
        ("candidate", side_said(found.candidate)),
        ("inputs", found.inputs),
        ("tolerance", f"relative {found.rtol:g}, absolute {found.atol:g}"),
        *(("note", note) for note in found.notes),
        *(
            ("failed", f"{sample.name}: {sample.numerics}: {sample.reason}")
            for sample in found.samples
            if sample.reason
        ),
    ]


def cells(figures: Figures) -> tuple[str, ...]:
    """Return the figures as text."""
    snr = "exact" if figures.max_error == 0 else _number(figures.snr_db, " dB")
    return (
        "" if figures.cosine is None else f"{figures.cosine:.6f}",
        _number(figures.max_error),
        _number(figures.mean_error),
        snr,
        figures.numerics,
    )


def output_rows(found: Comparison) -> list[tuple[str, ...]]:
    """Return a row for each output over all samples."""
    return [(each.tensor, *cells(each)) for each in found.outputs]


def sample_rows(found: Comparison) -> list[tuple[str, ...]]:
    """Return a row for each output of each sample."""
    return [
        (sample.name, each.tensor, *cells(each))
        for sample in found.samples
        for each in sample.outputs
    ]


def layer_rows(layers: Sequence[Layer]) -> Iterator[tuple[str, ...]]:
    """Yield a row for each layer."""
    for each in layers:
        named = str(each.depth), each.node, each.operator, each.figures.tensor
        yield (*named, *cells(each.figures))


def boxes_said(boxes: Boxes) -> str:
    """Return what the boxes come to."""
    counts = f"{boxes.matched} of {boxes.reference} boxes of the reference have a partner among "
    counts += f"the candidate's {boxes.candidate}"
    if boxes.min_iou is None:
        return counts
    return (
        f"{counts}; overlap at least {boxes.min_iou:.4f}, mean {boxes.mean_iou:.4f}; "
        f"scores differ by at most {boxes.max_score_error:.4f}"
    )


def first_said(found: Comparison) -> str:
    """Return which layer diverges first."""
    if found.layers is None:
        return ""
    for each in found.layers.layers:
        if each.figures.tensor == found.layers.first:
            return (
                f"first layer beyond tolerance whose inputs are within it: {each.operator} "
                f"{each.node!r}, node {each.depth + 1} of {found.layers.layers[-1].depth + 1}"
            )
    return "no layer is beyond tolerance whose inputs are within it"


def bisected_said(bisected: Bisected) -> str:
    """Return the smallest sub-model in words."""
    pairs = zip(bisected.operators, bisected.nodes, strict=True)
    named = [f"{operator} {name!r}" for operator, name in pairs]
    shown = ", ".join(named[:8]) + (f" and {len(named) - 8} more" if len(named) > 8 else "")
    proof = "proved by asking once more" if bisected.proved else "NOT proved when asked once more"
    return (
        f"smallest sub-model that shows it ({bisected.fault}): {shown}; {proof}; "
        f"{bisected.asked} sub-models asked; saved in {bisected.folder}"
    )


def worst_layers(found: Comparison) -> list[Layer]:
    """Return the layers with the most noise."""
    if found.layers is None:
        return []
    by_tensor = {each.figures.tensor: each for each in found.layers.layers}
    return [by_tensor[name] for name in found.layers.worst]


def _number(value: float | None, unit: str = "") -> str:
    return "" if value is None else f"{value:.4g}{unit}"

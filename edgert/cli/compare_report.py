"""What ``edgert compare`` is given and shows, and how it ends."""

from __future__ import annotations

import os
from pathlib import Path

import msgspec

from edgert.cli.coverage_suites import REFERENCES
from edgert.cli.progress import StatusLine
from edgert.cli.render import show, show_json, table
from edgert.coverage.adapters.registry import spec_of
from edgert.coverage.comparison import said
from edgert.coverage.comparison.chart import sparkline
from edgert.coverage.comparison.record import Comparison
from edgert.coverage.comparison.report import FORMATS
from edgert.coverage.protocol import Spec
from edgert.coverage.report.write import check_path, save_text
from edgert.device.memory import available_bytes
from edgert.errors import ResourceError, RunError, UserError
from edgert.models.cache import Cache
from edgert.models.catalog import load_catalog
from edgert.models.locate import Located, Locator

_COLUMNS = 72
_CHILDREN = 3  # both devices, and whatever reads the model
Device = tuple[str, Spec]


def prepare(files: tuple[Path, ...], output: Path | None, *, bisect: bool) -> None:
    """Find the faults of what is asked before the work.

    Raises:
        UserError: A file has no known format, or it is not said where the sub-model goes.
    """
    for file in files:
        check_path(file, FORMATS)
    if bisect and output is None:
        raise UserError("--bisect", "it is not said where the sub-model goes", "Add --output DIR")
    if output is not None and not bisect:
        raise UserError("--output", "it is for --bisect", "Add --bisect, or use --report")
    if output is not None and output.is_dir() and any(output.iterdir()):
        raise UserError(f"--output {output}", "there is something in it", "Name a new directory")
    if output is not None:
        there = next(
            folder for folder in (output.absolute(), *output.absolute().parents) if folder.exists()
        )
        if not (there.is_dir() and os.access(there, os.W_OK)):
            fault = f"nothing can be written into {there}"
            raise ResourceError(f"--output {output}", fault, "Name a folder of yours")


def located(model: str, line: StatusLine) -> Located:
    """Find a model, and pull it where it is not here.

    Raises:
        UserError: There is none.
    """
    locator = Locator(load_catalog(), Cache(), Path.cwd())
    return locator.locate(model, lambda *_: line.show(f"{model}: pulling"))


def devices_of(
    model: Located,
    reference: str | None,
    candidate: str,
    reference_options: dict[str, str],
    options: dict[str, str],
) -> tuple[Device, Device]:
    """Return the two devices and their adapters.

    Raises:
        UserError: There is no such adapter, or both are the same.
    """
    if reference is None:
        others = [name for name in REFERENCES[model.format] if name != candidate]
        if not others:
            fault = f"there is no other reference for {model.format} than {candidate}"
            raise UserError("--reference", fault, "Name one")
        reference = others[0]
    if (reference, reference_options) == (candidate, options):
        fault = f"{candidate} is compared with itself"
        raise UserError("--candidate", fault, "Name another device, or give --option")
    memory_bytes = available_bytes().bytes // _CHILDREN
    return (
        (reference, spec_of(reference, reference_options, memory_bytes)),
        (candidate, spec_of(candidate, options, memory_bytes)),
    )


def deliver(found: Comparison, files: tuple[Path, ...], *, as_json: bool) -> None:
    """Write and show a comparison.

    Raises:
        RunError: The devices differ.
    """
    for file in files:
        save_text(FORMATS[file.suffix.lower()](found), file)
    if as_json:
        show_json(msgspec.to_builtins(found))
    else:
        show("\n\n".join(_shown(found)))
    if found.numerics != "equal":
        reasons = [sample.reason for sample in found.samples if sample.reason]
        reasons += [each.reason for each in found.outputs if each.reason]
        said_of_it = f": {reasons[0]}" if reasons else ""
        place = f"{found.model}: {found.candidate.device}"
        raise RunError(place, f"{found.numerics} against {found.reference.device}{said_of_it}")


def _shown(found: Comparison) -> list[str]:
    parts = []
    if found.outputs:
        parts.append(table(said.OUTPUT_HEADERS, said.output_rows(found)))
    if found.boxes is not None:
        parts.append(f"boxes: {said.boxes_said(found.boxes)}")
    if found.layers is not None:
        noise = sparkline(found.layers.layers, _COLUMNS)
        parts.append(
            f"{said.first_said(found)}\nnoise along the depth, on {found.layers.sample}:\n{noise}"
        )
        if worst := said.worst_layers(found):
            parts.append(table(said.LAYER_HEADERS, said.layer_rows(worst)))
    if found.bisected is not None:
        parts.append(said.bisected_said(found.bisected))
    facts = "\n".join(f"{name}: {text}" for name, text in said.facts(found))
    return [*parts, f"{facts}\n{said.headline(found)}"]

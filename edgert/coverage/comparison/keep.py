"""A sub-model as it is attached to a report of a bug: its inputs, and what should come out."""

from __future__ import annotations

import platform
import shutil
import zipfile
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from edgert.coverage import values
from edgert.coverage.comparison.bisect import Part
from edgert.coverage.comparison.record import Bisected, Comparison
from edgert.coverage.comparison.said import side_said
from edgert.coverage.values import Value
from edgert.errors import ResourceError
from edgert.models.atomic import write_atomically

_README = """\
{model} by {candidate} against {reference}: {fault}

This is the smallest part of the model that was found to show it, alone, fed with what the reference
has at the place where it was cut out. {proof}

    model.onnx      {nodes}
    inputs.npz      its inputs
    expected.npz    its outputs by {reference}

Reproduce it with edgert {edgert}:

    {command}

{figures}

reference   {reference_said}
candidate   {candidate_said}
machine     {machine}
tolerance   relative {rtol:g}, absolute {atol:g}, or what the element type itself explains
the whole   {model}, sha256 {sha256}
"""

_PROVED = (
    "Asked once more, by a fresh process,\nit showed it again, and the reference alone gives the "
    "same outputs as inside of the whole."
)
_NOT_PROVED = "NOT PROVED: asked once more,\nit did not show it again, or not soundly."


def save(comparison: Comparison, bisected: Bisected, part: Part, folder: Path) -> None:
    """Write a sub-model with its inputs, expected outputs, and what has to be known.

    Raises:
        ResourceError: It cannot be written.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(part.model, folder / "model.onnx")
        write_arrays(folder / "inputs.npz", values.load(part.inputs))
        write_arrays(folder / "expected.npz", values.load(part.expected))
        write_atomically(folder / "README.txt", _readme(comparison, bisected).encode())
        (folder / "README.txt").chmod(0o644)
    except OSError as error:
        fault = f"cannot be written: {error.strerror}"
        raise ResourceError(f"--output {folder}", fault, "Name a folder of yours") from error


def write_arrays(path: Path, found: Mapping[str, Value]) -> None:
    """Write arrays as ``numpy.savez`` does; types that numpy has not as whole numbers."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, value in found.items():
            array = np.asarray(value)
            if array.dtype.kind == "O":
                array = array.astype(str)
            elif array.dtype.kind == "V" or array.dtype.isbuiltin != 1:
                array = array.view(f"u{array.dtype.itemsize}")
            with archive.open(f"{name}.npy", "w", force_zip64=True) as file:
                np.lib.format.write_array(file, np.require(array, requirements="C"))


def command(comparison: Comparison) -> str:
    """Return the command that compares the sub-model."""
    options = [
        *(
            f"--reference-option {key}={value}"
            for key, value in comparison.reference.options.items()
        ),
        *(f"--option {key}={value}" for key, value in comparison.candidate.options.items()),
    ]
    parts = [
        "edgert compare model.onnx --inputs inputs.npz",
        f"--reference {comparison.reference.device} --candidate {comparison.candidate.device}",
        *options,
        f"--rtol {comparison.rtol:g} --atol {comparison.atol:g}",
    ]
    return " \\\n        ".join(parts)


def _readme(comparison: Comparison, bisected: Bisected) -> str:
    pairs = zip(bisected.operators, bisected.nodes, strict=True)
    figures = [
        f"    {each.tensor}: {each.numerics}, max error {each.max_error}, cosine {each.cosine}"
        for each in bisected.outputs
    ]
    return _README.format(
        model=comparison.model,
        candidate=comparison.candidate.device,
        reference=comparison.reference.device,
        fault=f"{bisected.fault}. {bisected.reason}".strip(),
        proof=_PROVED if bisected.proved else _NOT_PROVED,
        nodes=", ".join(f"{operator} {name!r}" for operator, name in pairs),
        edgert=comparison.candidate.versions.get("edgert", ""),
        command=command(comparison),
        figures="\n".join(figures),
        reference_said=side_said(comparison.reference),
        candidate_said=side_said(comparison.candidate),
        machine=f"{platform.machine()}, {platform.platform()}, Python {platform.python_version()}",
        rtol=comparison.rtol,
        atol=comparison.atol,
        sha256=comparison.sha256,
    )

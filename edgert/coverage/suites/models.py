"""Whole models, each made ready to be asked about, with inputs and the reference's outputs.

Inputs are the same in every run: drawn from a seed, bytes as pictures have them, floats from 0 to 1
where nothing is known of what the model wants. They show whether two runtimes compute the same, not
whether the model is any good.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from edgert import isolate
from edgert.backends.registry import is_installed
from edgert.coverage import values
from edgert.coverage.adapter import Work
from edgert.coverage.graph import Graph
from edgert.coverage.values import Array
from edgert.errors import ModelError, UserError
from edgert.models.inspect import inspect
from edgert.models.locate import Located
from edgert.tensor import DTYPES, TensorSpec

_READ_WITHIN_S = 300.0
_BYTES = ("u8", "i8")


class Ready(msgspec.Struct, frozen=True, kw_only=True):
    """A model that can be asked about.

    Attributes:
        name: Of the catalog, or the file's.
        sha256: Checksum of the file as it was given.
        work: What an adapter is asked.
        outputs: Names of its outputs.
        graph: Its graph, where we can read it; None where only runtimes can.
    """

    name: str
    sha256: str
    work: Work
    outputs: list[str]
    graph: Graph | None


def make_ready(model: Located, shapes: Mapping[str, list[int]], folder: Path) -> Ready:
    """Write what is needed to ask about a model.

    Args:
        model: It must be here.
        shapes: Sizes for inputs that it leaves open; the catalog's where not given.
        folder: For its copy and its inputs.

    Raises:
        UserError: It is damaged, its sizes are open, or nothing here reads it.
    """
    path = model.need_path()
    fixed = {**(model.entry.shape if model.entry else {}), **shapes}
    known = {name: sizes for name, sizes in fixed.items() if sizes}
    report = inspect(model, known)
    if still_open := [
        f"{name} {spec}" for name, spec in report.inputs.items() if not spec.is_static
    ]:
        first = next(iter(report.inputs))
        raise ModelError(
            model.place,
            f"its sizes are open: {', '.join(still_open)}",
            f"Give them: --shape {first}=1,3,320,320",
        )
    for name, spec in report.inputs.items():
        if spec.dtype not in DTYPES:
            raise ModelError(model.place, f"nothing here makes {spec.dtype} for its input '{name}'")
    folder.mkdir(parents=True, exist_ok=True)
    source, graph = str(path), None
    if model.format == "onnx":
        source, graph = _onnx(model, known, folder)
    elif model.format == "tflite":
        graph = _tflite(model)
    inputs = folder / "in.npz"
    values.save(inputs, {name: _draw(name, spec) for name, spec in report.inputs.items()})
    work = Work(name=model.name, path=source, format=model.format, inputs=str(inputs))
    return Ready(
        name=model.name, sha256=model.sha256, work=work, outputs=list(report.outputs), graph=graph
    )


def models_in(folder: Path) -> list[str]:
    """Return the model files of a directory, by name.

    Raises:
        UserError: There is none, or it is no directory.
    """
    from edgert.models.formats import FORMATS, is_saved_model

    if not folder.is_dir():
        raise UserError(f"models {folder}", "is no directory", "Name a directory of model files")
    found = sorted(
        str(path)
        for path in folder.iterdir()
        if path.suffix.lower() in FORMATS or is_saved_model(path)
    )
    if not found:
        mend = f"Model files end in {', '.join(FORMATS)}; a SavedModel is a directory"
        raise UserError(f"models {folder}", "there is no model file in it", mend)
    return found


def _onnx(model: Located, shapes: Mapping[str, list[int]], folder: Path) -> tuple[str, Graph]:
    arguments = {
        "path": str(model.need_path()),
        "shapes": dict(shapes),
        "target": str(folder / "model.onnx"),
    }
    function = "edgert.coverage.suites.onnx_graph:make_ready"
    found = isolate.call(function, arguments, _READ_WITHIN_S, model.place, ModelError)
    return found["path"], msgspec.convert(found["graph"], Graph)


def _tflite(model: Located) -> Graph | None:
    """Return the graph as TFLite sees it; None where it is not here, or does not read the file."""
    if not is_installed("tflite"):
        return None
    function = "edgert.coverage.adapters.tflite:read_graph"
    arguments = {"path": str(model.need_path())}
    try:
        found = isolate.call(function, arguments, _READ_WITHIN_S, model.place, ModelError)
    except UserError:
        return None  # the runtime that is asked may read it all the same
    return msgspec.convert(found, Graph)


def _draw(name: str, spec: TensorSpec) -> Array:
    """Draw values for an input; the same for the same name and shape."""
    shape = tuple(size or 1 for size in spec.shape)
    random = np.random.default_rng(zlib.crc32(f"{name}{shape}".encode()))
    dtype: Any = np.dtype(DTYPES[spec.dtype])
    if spec.dtype in _BYTES:
        return random.integers(0, 128 if spec.dtype == "i8" else 256, shape, dtype)
    if dtype.kind in "iu":
        return random.integers(0, 2, shape).astype(dtype)
    if dtype.kind == "b":
        return random.integers(0, 2, shape).astype(bool)
    return random.random(shape, np.float32).astype(dtype)

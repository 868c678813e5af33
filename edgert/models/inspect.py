"""What a model file is made of: signature, operators, parameters, MACs, origin."""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping
from typing import Any

import msgspec

from edgert import isolate
from edgert.errors import ModelError
from edgert.models.formats import files_of
from edgert.models.locate import Located
from edgert.tensor import TensorSpec

SCHEMA = "edgert.model/1"
TIMEOUT_S = 300.0


class ModelReport(msgspec.Struct, frozen=True, kw_only=True):
    """What ``edgert models inspect`` tells.

    Attributes:
        schema: Version of this form.
        name: Catalog name, or the file's name.
        path: The file, or the folder of a SavedModel.
        format: ``onnx``, ``openvino-ir``, ``tensorflow``, ``saved-model``, ``tflite`` or
            ``paddle``.
        size_bytes: Of all its files.
        sha256: Checksum.
        catalog: Name of the catalog's entry that it is; None where it is none.
        licence: SPDX name where the catalog knows it.
        inputs: After fixing the shapes; None in a shape is an open dimension.
        outputs: The same.
        operators: Type -> how many.
        parameters: Elements of all weights; None where not known.
        macs: Multiply-accumulates of one inference; None where not known, never 0 for that.
        notes: What was not counted, and why.
        opset: Domain -> version, of ONNX files.
        producer: What made the file, where it says so.
    """

    schema: str = SCHEMA
    name: str
    path: str
    format: str
    size_bytes: int
    sha256: str
    catalog: str | None
    licence: str
    inputs: dict[str, TensorSpec]
    outputs: dict[str, TensorSpec]
    operators: dict[str, int]
    parameters: int | None
    macs: int | None
    notes: list[str]
    opset: dict[str, int] = {}
    producer: str = ""


def inspect(model: Located, shapes: Mapping[str, list[int]]) -> ModelReport:
    """Take a model apart, in a child process.

    Args:
        model: The model; it must be here.
        shapes: Sizes for inputs, open ones and others; the catalog's where not given.

    Raises:
        UserError: It is damaged, ``shapes`` do not fit, or nothing here reads it.
    """
    path = model.need_path()
    entry = model.entry
    fixed = {**(entry.shape if entry else {}), **shapes}
    arguments: dict[str, Any] = {"path": str(path), "shapes": fixed}
    function = "edgert.models.inspect_onnx:inspect"
    if model.format != "onnx" or importlib.util.find_spec("onnx") is None:
        function = "edgert.backends.registry:inspect"
        arguments["format"] = model.format
    found = isolate.call(function, arguments, TIMEOUT_S, model.place, ModelError)
    known = {
        "name": model.name,
        "path": str(path),
        "format": model.format,
        "size_bytes": sum(file.stat().st_size for file in files_of(path, model.place)),
        "sha256": model.sha256,
        "catalog": entry.name if entry else None,
        "licence": entry.licence if entry else "",
    }
    return msgspec.convert({**found, **known}, ModelReport)

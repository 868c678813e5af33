"""Every variant in every type it has, written once to a folder as models with their values.

Run in a child: it imports the schema, which the calling process need not have loaded.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from edgert.coverage import values
from edgert.coverage.adapter import Work
from edgert.coverage.suites.item import Item
from edgert.coverage.suites.kept import index_of, write_whole
from edgert.coverage.suites.tflite import (
    activations,
    choosing,
    cuts,
    elementwise,
    filters,
    images,
    layout,
    recurrent,
    reductions,
    types,
)
from edgert.coverage.suites.tflite.file import Model, options
from edgert.coverage.suites.tflite.put import Put, Tensor, put
from edgert.coverage.suites.tflite.variant import Kind, Variant

REVISION = 2
"""Of the suite: a change of what is written makes a new one, and a new folder."""

_ROOMS = (
    *(filters, images, elementwise, activations, reductions),
    *(layout, cuts, choosing, types, recurrent),
)


def prepare(folder: str) -> dict[str, str]:
    """Write the cases, where that has not been done.

    Args:
        folder: Where the suites of all versions live.

    Returns:
        The path of their index, and the versions a report names.
    """
    target = Path(folder) / f"tflite-{REVISION}"
    index = index_of(target)
    if not index.exists():
        write_whole(target, lambda made: [_write(*each, made, target) for each in every()])
    return {"index": str(index), "suite": f"tflite {REVISION}", "reference": "formulas in f64"}


def every() -> Iterator[tuple[Variant, Kind]]:
    """Yield every variant in every type it has."""
    for room in _ROOMS:
        for variant in room.variants():
            for kind in variant.kinds:
                yield variant, kind


def write_model(variant: Variant, kind: Kind, found: Put, path: Path) -> None:
    """Write the model of a case; its inputs are ``x0``, ``x1``, ..., its outputs ``y0``, ..."""
    model = Model()
    graph = model.graph
    reads, makes = [], []
    for number, tensor in enumerate(found.inputs):
        reads.append(-1 if tensor is None else _add(model, tensor, f"x{number}"))
        if tensor is not None and not tensor.constant and not tensor.is_state:
            graph.parts.inputs.append(reads[-1])
    for number, tensor in enumerate(found.outputs):
        makes.append(_add(model, tensor, f"y{number}"))
    code = model.code(variant.operator, variant.version.get(kind, 1))
    graph.operator(code, reads, makes, options(*variant.attributes))
    graph.output(*makes)
    model.save(path)


def _write(variant: Variant, kind: Kind, made: Path, target: Path) -> Item:
    name = variant.case(kind)
    found = put(variant, kind)
    write_model(variant, kind, found, made / f"{name}.tflite")
    values.save(made / f"{name}.in.npz", inputs_of(found))
    outputs = {f"y{number}": each.array for number, each in enumerate(found.outputs)}
    values.save(made / f"{name}.out.npz", outputs)
    stem = os.fspath(target / name)
    work = Work(name=name, path=f"{stem}.tflite", format="tflite", inputs=f"{stem}.in.npz")
    is_levels = any(each.scales is not None for each in found.outputs)
    return Item(
        work=work,
        operator=variant.operator,
        opset=variant.version.get(kind, 1),
        dtype=kind,
        form="tflite",
        expected=f"{stem}.out.npz",
        steps=variant.allowed(kind) if is_levels else 0,
    )


def inputs_of(found: Put) -> dict[str, values.Value]:
    """Return what an inference is given."""
    return {
        f"x{number}": tensor.array
        for number, tensor in enumerate(found.inputs)
        if tensor is not None and not tensor.constant and not tensor.is_state
    }


def _add(model: Model, tensor: Tensor, name: str) -> int:
    content = np.ascontiguousarray(tensor.array).tobytes()
    buffer = model.buffer(content) if tensor.constant else 0
    number = model.graph.tensor(tensor.array.shape, tensor.dtype, name, buffer=buffer)
    model.graph.parts.tensors[number].isVariable = tensor.is_state
    if tensor.scales is not None:
        scales = tensor.scales
        model.graph.quantise(number, scales.scale, scales.zero, scales.axis)
    return number

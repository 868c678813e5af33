"""The real inference behind the emulated accelerator: the first runtime that reads the model."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import msgspec
import numpy as np

from edgert.backends.base import Backend, CompileRequest, Session, Signature
from edgert.backends.once import infer_once
from edgert.backends.registry import READERS, backend, is_installed
from edgert.errors import DeviceError, ModelError
from edgert.tensor import DTYPES, TensorSpec
from edgert.transport.address import Array

# The order in which real runtimes are asked to read the model.
_REAL = READERS["onnx"]


def on_cpu(request: CompileRequest) -> Session:
    """Compile the model for the CPU."""
    reader, _ = first_reader(request.path, request.shapes)
    return reader.compile(
        msgspec.structs.replace(request, device="CPU", options={}, precision="f32")
    )


def one_inference(request: CompileRequest, file: str, place: str) -> dict[str, Array]:
    """Return the outputs of one real inference on the CPU.

    Args:
        request: What is to be compiled.
        file: A ``.npy`` file with the input as the model has it; empty for noise.
        place: With which an error about the file begins.

    Raises:
        DeviceError: The file cannot be read, or does not fit.
        ModelError: No runtime that is installed reads the model.
    """
    request = msgspec.structs.replace(request, requests=1)
    if file:
        # The file is the input as the model has it, whatever the frames are.
        request = msgspec.structs.replace(request, bytes={})
    session = on_cpu(request)
    try:
        return infer_once(session, _example(session.inputs, file, place))
    finally:
        session.close()


def first_reader(path: str, shapes: Mapping[str, list[int]]) -> tuple[Backend, Signature]:
    """Return the first runtime that reads a model, and the signature that it reads.

    Raises:
        ModelError: None of those that are installed reads it; the first one's reason.
        DeviceError: None is installed.
    """
    refused: ModelError | None = None
    for name in filter(is_installed, _REAL):
        reader = backend(name)
        try:
            return reader, reader.signature(path, shapes)
        except ModelError as error:
            refused = refused or error
    raise refused or DeviceError(
        "backend 'emulated'",
        "it replays a real inference, and no real runtime is here",
        "Run: pip install 'edgert[openvino]'",
    )


def _example(inputs: Mapping[str, TensorSpec], file: str, place: str) -> dict[str, Array]:
    if not file:
        return {name: _noise(spec) for name, spec in inputs.items()}
    place = f"{place}, options, input"
    if len(inputs) != 1:
        raise DeviceError(place, f"the model has {len(inputs)} inputs, the file is for one")
    try:
        array = np.load(Path(file), allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        raise DeviceError(place, f"{file} cannot be read: {error}") from error
    return {name: _batch_of(array, spec) for name, spec in inputs.items()}


def _noise(spec: TensorSpec) -> Array:
    """Return grey values that are the same every time; zeros for whole numbers, often indices."""
    shape = tuple(size or 0 for size in spec.shape)
    if spec.dtype not in ("u8", "f16", "f32"):
        return np.zeros(shape, DTYPES[spec.dtype])
    item = np.random.default_rng(0).integers(0, 256, (1, *shape[1:]) if shape else ())
    return _batch_of(item.astype(DTYPES[spec.dtype]), spec)


def _batch_of(item: Array, spec: TensorSpec) -> Array:
    """Repeat one item for each place of a batch, where the model was compiled for one."""
    batch = spec.shape[0] if spec.shape else 1
    if not batch or item.shape[:1] != (1,):
        return np.ascontiguousarray(item)
    return np.ascontiguousarray(np.repeat(item, batch, axis=0))

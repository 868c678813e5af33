"""The real inference behind the emulated accelerator: of the first runtime that takes the model."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple, TypeVar

import msgspec
import numpy as np

from edgert.backends.base import Backend, CompileRequest, Session, Signature
from edgert.backends.once import infer_once
from edgert.backends.registry import READERS, backend, is_installed
from edgert.errors import DeviceError, ModelError, UserError
from edgert.tensor import DTYPES, TensorSpec
from edgert.transport.address import Array

Found = TypeVar("Found")


class Replay(NamedTuple):
    """The outputs of a real inference, in the model's order, and the runtime that made them."""

    results: dict[str, Array]
    runtime: str


def on_cpu(request: CompileRequest) -> Session:
    """Compile the model for the CPU, by the first runtime that takes it.

    Raises:
        ModelError, DeviceError: None of those that are installed takes it; the first one's reason.
    """
    wanted = msgspec.structs.replace(request, device="CPU", options={}, precision="f32")
    return _first(request.path, lambda reader: reader.compile(wanted))


def one_inference(request: CompileRequest, file: str, place: str) -> Replay:
    """Return the outputs of one real inference on the CPU.

    Args:
        request: What is to be compiled.
        file: A ``.npy`` file with the input as the model has it; empty for noise.
        place: With which an error about the file begins.

    Raises:
        DeviceError: The file cannot be read, or does not fit; or no runtime takes the model.
        ModelError: No runtime that is installed reads the model.
    """
    request = msgspec.structs.replace(request, requests=1)
    if file:
        # The file is the input as the model has it, whatever the frames are.
        request = msgspec.structs.replace(request, bytes={})
    session = on_cpu(request)
    try:
        results = infer_once(session, _example(session.inputs, file, place))
        return Replay({name: results[name] for name in session.outputs}, session.device.runtime)
    finally:
        session.close()


def signature_of(path: str, shapes: Mapping[str, list[int]]) -> Signature:
    """Return the signature of a model as the first runtime tells it that reads it.

    Raises:
        ModelError: None of those that are installed reads it; the first one's reason.
        DeviceError: None is installed.
    """
    return _first(path, lambda reader: reader.signature(path, shapes))


def _first(path: str, ask: Callable[[Backend], Found]) -> Found:
    """Return what the first runtime answers that does not refuse the model."""
    # All that is known of a model here is its name; what else OpenVINO reads, it reads alone.
    format = "tflite" if path.lower().endswith(".tflite") else "onnx"  # noqa: A001  the models' word
    refused: UserError | None = None
    for name in filter(is_installed, READERS[format]):
        try:
            return ask(backend(name))
        except (ModelError, DeviceError) as error:
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

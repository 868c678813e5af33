"""A stand-in for an accelerator that is not there: known latency, outputs replayed, faults.

It never pretends: it is no default, and every report names it ``emulated``. What it gives is one
real inference, made on the CPU when the model is loaded, again and again.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Mapping
from pathlib import Path

import msgspec
import numpy as np

from edgert.backends.base import Backend, CompileRequest, DeviceReport, Session, Signature
from edgert.backends.byte_input import with_bytes
from edgert.backends.emulated_faults import Faulty
from edgert.backends.emulated_lanes import lanes_of
from edgert.backends.emulated_options import EmulatedOptions
from edgert.backends.emulated_session import Behaviour, EmulatedSession
from edgert.backends.emulated_timing import duration_of
from edgert.backends.options import read_all_options
from edgert.backends.registry import READERS, backend, is_installed
from edgert.errors import DeviceError, ModelError
from edgert.tensor import DTYPES, TensorSpec
from edgert.transport.address import Array

# The order in which real runtimes are asked to read the model.
_REAL = READERS["onnx"]
DEVICES = ("NPU", "GPU")


class EmulatedBackend:
    """The emulated accelerator."""

    name = "emulated"

    def version(self) -> str:
        """Name and version of the runtime."""
        return "emulated 1"

    def devices(self) -> tuple[str, ...]:
        """The devices it stands in for."""
        return DEVICES

    def signature(self, path: str, shapes: Mapping[str, list[int]]) -> Signature:
        """Read a model's inputs and outputs with the first real runtime that reads it."""
        return _first_reader(path, shapes)[1]

    def compile(self, request: CompileRequest) -> EmulatedSession:
        """Make the one real inference and load its outputs."""
        place = f"{self.name}:{request.device}"
        _require(request.device, place)
        options = read_all_options(EmulatedOptions, request.options, place)
        state = _folder(options.state, place)
        faulty = Faulty(place, options.faults, state)
        faulty.open()
        inputs, results = _one_inference(request, options, place)
        if options.faults.spoil_floats and not any(
            each.dtype.kind == "f" for each in results.values()
        ):
            raise DeviceError(f"{place}, options, faults", "the model has no outputs of floats")
        behaviour = Behaviour(
            lanes_of(place, request.device, options.lanes, state),
            duration_of(options, _items(inputs)),
            faulty.changes(options.seed),
            faulty.steps(),
        )
        report = DeviceReport(place, place, "replayed", self.version(), emulated=True)
        return EmulatedSession(inputs, results, report, request.requests, behaviour)


def _require(device: str, place: str) -> None:
    """Refuse names that are none of ours: a slip of the pen must not become a device."""
    if not re.fullmatch(rf"({'|'.join(DEVICES)})(\.\d+)?", device):
        here = ", ".join(DEVICES)
        mend = f"There are: {here}, and {DEVICES[0]}.1, {DEVICES[0]}.2 and so on"
        raise DeviceError(place, "no such device is emulated", mend)


def _folder(state: str, place: str) -> Path | None:
    if not state:
        return None
    try:
        Path(state).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise DeviceError(f"{place}, options, state", f"{state} cannot be made: {error}") from error
    return Path(state)


def _one_inference(
    request: CompileRequest, options: EmulatedOptions, place: str
) -> tuple[Mapping[str, TensorSpec], dict[str, Array]]:
    """Return the inputs that callers see, and the outputs of one real inference on the CPU."""
    reader, signature = _first_reader(request.path, request.shapes)
    seen = with_bytes(signature, request.bytes, Path(request.path).name)
    on_cpu = msgspec.structs.replace(request, device="CPU", requests=1, options={}, precision="f32")
    if options.input:
        # The file is the input as the model has it, whatever the frames are.
        on_cpu = msgspec.structs.replace(on_cpu, bytes={})
    session = reader.compile(on_cpu)
    try:
        results = _infer_once(session, _example(session.inputs, options.input, place))
    finally:
        session.close()
    return seen.inputs, {name: results[name] for name in signature.outputs}


def _items(inputs: Mapping[str, TensorSpec]) -> int:
    """Return how many items a batch has: the first size of the first input."""
    shape = next(iter(inputs.values())).shape if inputs else ()
    return shape[0] or 1 if shape else 1


def _first_reader(path: str, shapes: Mapping[str, list[int]]) -> tuple[Backend, Signature]:
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
    return {name: np.ascontiguousarray(array) for name in inputs}


def _noise(spec: TensorSpec) -> Array:
    """Return grey values that are the same every time; zeros for whole numbers, often indices."""
    shape = tuple(size or 0 for size in spec.shape)
    if spec.dtype in ("u8", "f16", "f32"):
        return np.random.default_rng(0).integers(0, 256, shape).astype(DTYPES[spec.dtype])
    return np.zeros(shape, DTYPES[spec.dtype])


def _infer_once(session: Session, inputs: Mapping[str, Array]) -> dict[str, Array]:
    """Run one inference; an output that is open gets the room it asks for."""
    results: dict[str, Array] = {}

    def room(name: str, shape: tuple[int, ...]) -> Array:
        results[name] = np.empty(shape, DTYPES[session.outputs[name].dtype])
        return results[name]

    targets = {
        name: room(name, tuple(size or 0 for size in spec.shape))
        if spec.is_static
        else lambda shape, name=name: room(name, shape)
        for name, spec in session.outputs.items()
    }
    ended = threading.Event()
    errors: list[BaseException | None] = []

    def done(error: BaseException | None) -> None:
        errors.append(error)
        ended.set()

    session.start(inputs, targets, done)
    ended.wait()
    if errors[0] is not None:
        raise errors[0]
    return results

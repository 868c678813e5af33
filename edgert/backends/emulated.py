"""A stand-in for an accelerator that is not there: known latency, outputs replayed, faults.

It never pretends: it is no default, and every report names it ``emulated``. What it gives is one
real inference, made on the CPU when the model is loaded, again and again.

    emulated_options.py    what it is like, and what is to go wrong
    emulated_model.py      the real inference behind it
    emulated_limits.py     models that it refuses: operators, memory, open sizes
    emulated_precision.py  results rounded to what it computes in
    emulated_session.py    results replayed, or computed on the CPU after all
    emulated_device.py     ... that are held back until the device would have them
    emulated_lanes.py      whose turn it is
    emulated_timing.py     how long it takes
    emulated_faults.py     what goes wrong
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from msgspec.structs import replace

from edgert.backends.base import CompileRequest, DeviceReport, Session, Signature
from edgert.backends.binding import refuse_open_inputs
from edgert.backends.byte_input import with_bytes
from edgert.backends.emulated_device import Behaviour
from edgert.backends.emulated_faults import Faulty
from edgert.backends.emulated_lanes import lanes_of
from edgert.backends.emulated_limits import place_model, refuse_open_outputs
from edgert.backends.emulated_model import on_cpu, one_inference, signature_of
from edgert.backends.emulated_options import EmulatedOptions, read
from edgert.backends.emulated_precision import round_all
from edgert.backends.emulated_session import ComputingSession, ReplayingSession
from edgert.backends.emulated_timing import duration_of
from edgert.backends.placement import landed
from edgert.errors import DeviceError
from edgert.tensor import TensorSpec

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
        return signature_of(path, shapes)

    def compile(self, request: CompileRequest) -> Session:
        """Do what goes wrong, refuse what does not fit, and load the model."""
        place = f"{self.name}:{request.device}"
        _require(request.device, place)
        options = read(request.options, place)
        with _told(options.state, place):
            state = _folder(options.state)
            faulty = Faulty(place, options.faults, state)
            faulty.open()
        signature = self.signature(request.path, request.shapes)
        name = Path(request.path).name
        refuse_open_inputs(name, signature.inputs)
        seen = with_bytes(signature, request.bytes, name)
        _require_floats(signature.outputs.values(), options, place)
        if options.computes or not options.dynamic_shapes:
            refuse_open_outputs(signature, options, place)
        with _told(options.state, place):
            lanes = lanes_of(place, request.device, options.lanes, state)
        behaviour = Behaviour(
            lanes,
            duration_of(options, _items(seen.inputs)),
            faulty.changes(options.seed),
            faulty.steps(),
        )
        report = self._report(request, options, place)
        if options.computes:
            computing = on_cpu(request)
            report = self._over(computing.device.runtime, report)
            return ComputingSession(computing, report, behaviour, options.precision)
        results, runtime = one_inference(request, options.input, place)
        round_all(results.values(), options.precision)
        report = self._over(runtime, report)
        return ReplayingSession(seen.inputs, results, report, request.requests, behaviour)

    def _over(self, runtime: str, report: DeviceReport) -> DeviceReport:
        """Say whose results are given."""
        return replace(report, runtime=f"{self.version()}, results of {runtime}")

    def _report(
        self, request: CompileRequest, options: EmulatedOptions, place: str
    ) -> DeviceReport:
        placed = place_model(request, options, place)
        actual = landed(placed, place, place, whole=request.whole) if placed else place
        how = [options.precision or "", "" if options.computes else "replayed"]
        return DeviceReport(
            place,
            actual,
            ", ".join(filter(None, how)),
            self.version(),
            emulated=True,
            placed=str(placed or ""),
        )


def _require(device: str, place: str) -> None:
    """Refuse names that are none of ours: a slip of the pen must not become a device."""
    if not re.fullmatch(rf"({'|'.join(DEVICES)})(\.\d+)?", device):
        here = ", ".join(DEVICES)
        mend = f"There are: {here}, and {DEVICES[0]}.1, {DEVICES[0]}.2 and so on"
        raise DeviceError(place, "no such device is emulated", mend)


def _require_floats(outputs: Iterable[TensorSpec], options: EmulatedOptions, place: str) -> None:
    if options.faults.spoil_floats and not any(spec.dtype.startswith("f") for spec in outputs):
        raise DeviceError(f"{place}, options, faults", "the model has no outputs of floats")


@contextmanager
def _told(state: str, place: str) -> Iterator[None]:
    """Tell what is wrong with the device's folder."""
    try:
        yield
    except OSError as error:
        said = f"{state} cannot be used: {error.strerror}"
        raise DeviceError(f"{place}, options, state", said) from error


def _folder(state: str) -> Path | None:
    if not state:
        return None
    Path(state).mkdir(parents=True, exist_ok=True)
    return Path(state)


def _items(inputs: Mapping[str, TensorSpec]) -> int:
    """Return how many items a batch has: the first size of the first input."""
    shape = next(iter(inputs.values())).shape if inputs else ()
    return shape[0] or 1 if shape else 1

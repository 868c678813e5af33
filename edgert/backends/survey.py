"""What each runtime really has here: asked in children, and its accelerators tried out.

    ask    one child a runtime: its version, its devices, what they are called
    prove  one child a device:  compile a small model for it, run it, check the result

A runtime that crashes, hangs or cannot be imported costs its own line. A device is usable only
where its runtime lists it and, unless it is the CPU, a model has run on it there: being compiled
into a library, or listed, is no proof that the hardware is here.
"""

from __future__ import annotations

import tempfile
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from msgspec.structs import replace

from edgert import isolate
from edgert.backends import registry
from edgert.backends.base import CompileRequest, DescribesDevices, DeviceFacts, Session
from edgert.backends.trial_model import FACTOR, SHAPE, trial_models
from edgert.errors import DeviceError, EdgertError, ModelError
from edgert.isolate import Call

ASK_TIMEOUT_S = 30.0
PROVE_TIMEOUT_S = 60.0
_TOLERANCE = 0.05  # for devices that compute in few bits
_FORMAT = "onnx"
# Read by runtimes that are given the model in another format than ONNX.
_FORMATS = {"tflite": "tflite"}
# They take only models that were compiled for them, which the trial model is not.
_TAKE_COMPILED = (("tflite", "edgetpu"), ("tflite", "ethosu"))


class Listing(msgspec.Struct, frozen=True):
    """What a runtime answers: its version, and facts by device."""

    version: str
    devices: dict[str, DeviceFacts]


class DeviceState(msgspec.Struct, frozen=True):
    """One device of a runtime.

    Attributes:
        device: In the runtime's own words, as in a pipeline file after ``runtime:``.
        usable: Whether models run on it.
        proof: ``ran`` where a model was run on it just now, ``listed`` where the runtime says it
            is here (its CPU; what takes only models that were compiled for it), else empty.
        emulated: Whether a stand-in does the work.
        name: What the hardware is called; empty where the runtime does not say.
        driver: Version of its driver; empty where the runtime does not say.
        reason: Why it is not usable; empty where it is.
        mend: What to do about it.
    """

    device: str
    usable: bool
    proof: str = ""
    emulated: bool = False
    name: str = ""
    driver: str = ""
    reason: str = ""
    mend: str = ""


class Runtime(msgspec.Struct, frozen=True):
    """A runtime that answered."""

    name: str
    version: str
    devices: tuple[DeviceState, ...]


class MissingRuntime(msgspec.Struct, frozen=True):
    """A runtime that is not installed, or is broken: why, and the mend."""

    name: str
    missing: str
    mend: str


def survey(
    names: Sequence[str] | None = None,
    ask_timeout_s: float = ASK_TIMEOUT_S,
    prove_timeout_s: float = PROVE_TIMEOUT_S,
) -> tuple[Runtime | MissingRuntime, ...]:
    """Ask every runtime, all at once, and then try the accelerators they list.

    Args:
        names: The runtimes to ask; all that the registry knows where it is not given.
        ask_timeout_s: After this a runtime that has not answered is given up.
        prove_timeout_s: The same for the trial on one device.
    """
    asked = registry.names() if names is None else tuple(names)
    answers = isolate.call_all([_ask_call(name, ask_timeout_s) for name in asked])
    listings = {
        name: msgspec.convert(answer, Listing)
        for name, answer in zip(asked, answers, strict=True)
        if not isinstance(answer, EdgertError)
    }
    states = _prove_all(listings, prove_timeout_s)
    return tuple(
        Runtime(name, listings[name].version, tuple(states[name].values()))
        if name in listings
        else _missing(name, answer)
        for name, answer in zip(asked, answers, strict=True)
    )


def ask(name: str) -> dict[str, Any]:
    """Return a ``Listing`` as data; meant for a child process.

    Raises:
        DeviceError: As ``registry.backend``.
    """
    backend = registry.backend(name)
    describe = backend.describe if isinstance(backend, DescribesDevices) else _know_nothing
    devices = {device: msgspec.to_builtins(describe(device)) for device in backend.devices()}
    # A backend of somebody else's may answer anything: what is no listing is refused here.
    listing = msgspec.convert({"version": backend.version(), "devices": devices}, Listing)
    answer: dict[str, Any] = msgspec.to_builtins(listing)
    return answer


def prove(name: str, device: str, model: str) -> bool:
    """Run the trial model on a device, and return whether it is emulated; meant for a child.

    Args:
        name: The runtime.
        device: One of its devices.
        model: The trial model's file; the caller's, since a driver may take the child down.

    Raises:
        DeviceError: It refuses the model, or computes something else.
        ModelError: The runtime does not read the trial model.
    """
    session = registry.backend(name).compile(CompileRequest(model, device))
    try:
        result = _infer(session)
    finally:
        session.close()
    # A stand-in replays another input's result.
    if not session.device.emulated and not np.allclose(result, FACTOR, rtol=_TOLERANCE):
        raise DeviceError(
            f"{name}:{device}", "it computes wrong results", "Update its driver and its runtime"
        )
    return session.device.emulated


def _ask_call(name: str, timeout_s: float) -> Call:
    function = f"{__name__}:{ask.__name__}"
    return Call(function, {"name": name}, timeout_s, f"backend {name!r}", DeviceError)


def _prove_call(name: str, device: str, model: Path, timeout_s: float) -> Call:
    arguments = {"name": name, "device": device, "model": str(model)}
    function = f"{__name__}:{prove.__name__}"
    return Call(function, arguments, timeout_s, f"{name}:{device}", DeviceError)


def _prove_all(listings: dict[str, Listing], timeout_s: float) -> dict[str, dict[str, DeviceState]]:
    pairs = [(name, device) for name, listing in listings.items() for device in listing.devices]
    tried = [pair for pair in pairs if not _is_cpu(pair[1]) and pair not in _TAKE_COMPILED]
    with tempfile.TemporaryDirectory(prefix="edgert-trial-") as folder:
        files = {name: Path(folder) / f"trial.{name}" for name in trial_models()}
        for format, content in trial_models().items():  # noqa: A001  the models' word
            files[format].write_bytes(content)
        calls = [
            _prove_call(name, device, files[_FORMATS.get(name, _FORMAT)], timeout_s)
            for name, device in tried
        ]
        outcomes = isolate.call_all(calls)
    proofs: dict[tuple[str, str], Any] = dict(zip(tried, outcomes, strict=True))
    states: dict[str, dict[str, DeviceState]] = {name: {} for name in listings}
    for name, device in pairs:
        facts = listings[name].devices[device]
        states[name][device] = _state(name, device, facts, proofs.get((name, device)))
    return states


def _state(name: str, device: str, facts: DeviceFacts, outcome: Any) -> DeviceState:
    """Return what came of one device; ``outcome`` is None where it was not tried."""
    state = DeviceState(device, usable=True, name=facts.name, driver=facts.driver)
    reads_it = name in registry.READERS[_FORMATS.get(name, _FORMAT)]
    if outcome is None or (isinstance(outcome, ModelError) and not reads_it):
        return replace(state, proof="listed")
    if isinstance(outcome, EdgertError):
        first = outcome.faults[0]
        mend = first.mend or f"See whether its driver is whole: {name} lists the device"
        return replace(state, usable=False, reason=first.fault, mend=mend)
    return replace(state, proof="ran", emulated=bool(outcome))


def _missing(name: str, error: EdgertError) -> MissingRuntime:
    first = error.faults[0]
    return MissingRuntime(name, first.fault, first.mend or "Install it anew")


def _know_nothing(_: str) -> DeviceFacts:
    return DeviceFacts()


def _is_cpu(device: str) -> bool:
    return device.upper() == "CPU"


def _infer(session: Session) -> Any:
    # Both are kept until the end: a session holds their addresses, not the arrays.
    inputs = {"x": np.ones(SHAPE, np.float32)}
    outputs = {"y": np.zeros(SHAPE, np.float32)}
    ended = threading.Event()
    errors: list[BaseException | None] = []

    def done(error: BaseException | None) -> None:
        errors.append(error)
        ended.set()

    session.start(inputs, outputs, done)
    ended.wait()
    if errors[0] is not None:
        raise errors[0]
    return outputs["y"]

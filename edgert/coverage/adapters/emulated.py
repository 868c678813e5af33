"""edgert's emulated accelerator: what it computes is computed, and said to be, by the CPU.

It is there for tests and for trying the tools out: its precision and its faults make a device that
differs, without one.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from edgert.backends.base import CompileRequest, Session
from edgert.backends.emulated import EmulatedBackend
from edgert.backends.emulated_options import read
from edgert.backends.once import infer_once
from edgert.coverage.adapter import Answer, Facts, Work
from edgert.coverage.adapters.timing import median_ms
from edgert.coverage.record import Placement
from edgert.coverage.values import Array, Value, Values, load
from edgert.errors import DeviceError

_FORMATS = ("onnx", "openvino-ir", "tflite", "tensorflow", "saved-model", "paddle")


class EmulatedAdapter:
    """The emulated accelerator, computing unless its options say otherwise.

    Args:
        device: ``NPU`` or ``GPU``.
        options: As ``options:`` of a pipeline has them; ``faults.noise`` means the key inside.
    """

    def __init__(self, device: str, options: dict[str, Any]) -> None:
        self._backend = EmulatedBackend()
        self._device = device
        self._given = {"outputs": "computed", **nested(options)}

    def facts(self) -> Facts:
        """Say that it is emulated, or which option is wrong."""
        versions = {"emulated": self._backend.version().partition(" ")[2]}
        place = f"emulated:{self._device}"
        reason = mend = ""
        try:
            read(self._given, place)
        except DeviceError as error:
            reason, mend = "; ".join(each.fault for each in error.faults), error.faults[0].mend
        if self._device.partition(".")[0] not in self._backend.devices():
            reason = f"no device '{self._device}' is emulated"
            mend = f"There are: {', '.join(self._backend.devices())}"
        return Facts(
            evidence="unavailable" if reason else "emulated",
            versions=versions,
            formats=_FORMATS,
            computes=not reason,
            reason=reason,
            mend=mend,
        )

    def ask(self, work: Work) -> tuple[Answer, Values]:
        """Compile a model, which it may refuse, and run it."""
        request = CompileRequest(work.path, self._device, options=self._given)
        try:
            session = self._backend.compile(request)
        except DeviceError as error:
            reason = error.faults[0].fault
            return Answer(placement="rejected", unsupported=True, reason=reason), {}
        try:
            return _run(session, work)
        finally:
            session.close()


def nested(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return options as the file would have them: values read as YAML, keys at their points."""
    found: dict[str, Any] = {}
    for key, value in options.items():
        *above, last = key.split(".")
        into = found
        for name in above:
            into = into.setdefault(name, {})
        into[last] = yaml.safe_load(value) if isinstance(value, str) else value
    return found


def _run(session: Session, work: Work) -> tuple[Answer, Values]:
    placement = _placement(session.device.placed)
    if not work.inputs:
        return Answer(placement=placement), {}
    inputs = _inputs_of(session, load(Path(work.inputs)))
    outputs: dict[str, Value] = dict(infer_once(session, inputs))
    latency_ms = median_ms(lambda: infer_once(session, inputs), work.runs)
    return Answer(placement=placement, latency_ms=latency_ms), outputs


def _placement(placed: str) -> Placement:
    """Return the whole model, unless the options leave operators to the CPU."""
    if not placed:
        return "device"
    taken, _, total = placed.split()[:3]
    if taken == total:
        return "device"
    return "cpu" if taken == "0" else "partly"


def _inputs_of(session: Session, values: Values) -> dict[str, Array]:
    inputs = {}
    for name in session.inputs:
        value = values[name]
        if not isinstance(value, np.ndarray):
            msg = f"input '{name}' is not a tensor, and the emulated device takes nothing else"
            raise TypeError(msg)
        inputs[name] = np.require(value, requirements="C")
    return inputs

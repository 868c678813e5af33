"""What an emulated device gives: results replayed, or computed on the CPU after all."""

from __future__ import annotations

import time
import weakref
from collections.abc import Mapping
from functools import partial
from itertools import count
from typing import Any

from msgspec.structs import replace

from edgert.backends.base import DeviceReport, Done, Session, Targets, Tensors
from edgert.backends.binding import ports
from edgert.backends.emulated_device import Behaviour, Device
from edgert.backends.emulated_precision import rounding
from edgert.errors import DeviceError
from edgert.tensor import DTYPES, TensorSpec
from edgert.transport.address import Array

_OURS = {numpy_name: ours for ours, numpy_name in DTYPES.items()}


class ReplayingSession:
    """One result, again and again; see ``edgert.backends.base.Session``."""

    def __init__(
        self,
        inputs: Mapping[str, TensorSpec],
        results: Mapping[str, Array],
        device: DeviceReport,
        requests: int,
        behaviour: Behaviour,
    ) -> None:
        self.inputs = inputs
        self.outputs: Mapping[str, TensorSpec] = {
            name: TensorSpec(_OURS[result.dtype.name], result.shape)
            for name, result in results.items()
        }
        self.device = device
        self.copied_bytes = 0
        self.requests = requests
        self._inputs = ports(device.actual, inputs)
        self._results = [(port, results[port.name]) for port in ports(device.actual, self.outputs)]
        self._write = _write if behaviour.changes else self._write_once
        self._written: weakref.WeakValueDictionary[int, Array] = weakref.WeakValueDictionary()
        self._device = Device(device.requested, behaviour, requests)

    def start(self, inputs: Tensors, outputs: Targets, done: Done) -> None:
        """Begin one inference on the caller's memory."""
        for port in self._inputs:
            port.address(inputs)
        arrays: Mapping[str, Any] = outputs
        for port, result in self._results:
            port.address(outputs)
            self._write(arrays[port.name], result)
        self._device.finish(time.monotonic(), outputs, done)

    def close(self) -> None:
        """Wait for what is in flight and give everything back."""
        self._device.close()
        self._results.clear()
        self._written.clear()

    def _write_once(self, array: Array, result: Array) -> None:
        # A slot's array lives as long as its ring, nobody but this session writes it, and the
        # result is always the same: written once it stays true. A device's DMA would cost no CPU
        # time either. Known by the object, not by its address, which other memory may get later.
        if self._written.get(id(array)) is not array:
            array[...] = result
            self._written[id(array)] = array


def _write(array: Array, result: Array) -> None:
    array[...] = result


class ComputingSession:
    """Real results, computed on the CPU, and held back; see ``edgert.backends.base.Session``.

    Where the CPU takes longer than the device would, the device takes as long as the CPU.
    """

    def __init__(
        self, session: Session, device: DeviceReport, behaviour: Behaviour, precision: str | None
    ) -> None:
        self.inputs = session.inputs
        self.outputs = session.outputs
        self.device = device if precision else replace(device, precision=session.device.precision)
        self.copied_bytes = session.copied_bytes
        self.requests = session.requests
        self._session = session
        if precision:
            behaviour = replace(behaviour, changes=[rounding(precision), *behaviour.changes])
        self._device = Device(device.requested, behaviour, session.requests)
        self._numbers = count()
        # Not in the callbacks, which the runtime may keep: the caller has its memory back by then.
        self._pending: dict[int, tuple[float, Targets, Done]] = {}

    def start(self, inputs: Tensors, outputs: Targets, done: Done) -> None:
        """Begin one inference on the caller's memory."""
        number = next(self._numbers)
        self._pending[number] = (time.monotonic(), outputs, done)
        try:
            self._session.start(inputs, outputs, partial(self._computed, number))
        except DeviceError:
            del self._pending[number]
            raise

    def close(self) -> None:
        """Wait for what is in flight and give everything back."""
        self._session.close()
        self._device.close()

    def _computed(self, number: int, error: BaseException | None) -> None:
        began_s, outputs, done = self._pending.pop(number)
        self.copied_bytes = self._session.copied_bytes
        if error is None:
            self._device.finish(began_s, outputs, done)
        else:
            done(error)

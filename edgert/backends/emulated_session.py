"""The emulated device: a thread that does one inference at a time by waiting for its end."""

from __future__ import annotations

import ctypes
import queue
import threading
import time
import weakref
from collections.abc import Mapping

import numpy as np

from edgert.backends.base import DeviceReport, Done, Targets, Tensors
from edgert.backends.binding import Port, ports
from edgert.tensor import DTYPES, TensorSpec
from edgert.transport.address import Array

PR_SET_TIMERSLACK = 29
_OURS = {numpy_name: ours for ours, numpy_name in DTYPES.items()}


class EmulatedSession:
    """A device of fixed latency; see ``edgert.backends.base.Session``.

    An inference ends ``latency_s`` after it began, and begins when the one before has ended. Ends
    are absolute times, so that late wake-ups do not add up: kept busy, it does exactly
    1 / latency inferences a second.
    """

    def __init__(
        self,
        inputs: Mapping[str, TensorSpec],
        results: Mapping[str, Array],
        device: DeviceReport,
        requests: int,
        latency_s: float,
    ) -> None:
        self.inputs = inputs
        self.outputs = {
            name: TensorSpec(_OURS[result.dtype.name], result.shape)
            for name, result in results.items()
        }
        self.device = device
        self.copied_bytes = 0
        self.requests = requests
        self._latency_s = latency_s
        self._inputs = ports(device.actual, inputs)
        self._results = [(port, results[port.name]) for port in ports(device.actual, self.outputs)]
        self._written: weakref.WeakValueDictionary[int, Array] = weakref.WeakValueDictionary()
        self._jobs: queue.SimpleQueue[tuple[float, Done] | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._work, name="emulated-device", daemon=True)
        self._thread.start()

    def start(self, inputs: Tensors, outputs: Targets, done: Done) -> None:
        """Begin one inference on the caller's memory."""
        for port in self._inputs:
            port.address(inputs)
        for port, result in self._results:
            self._replay(port, result, outputs)
        self._jobs.put((time.monotonic(), done))

    def close(self) -> None:
        """Wait for what is in flight and give everything back."""
        self._jobs.put(None)
        self._thread.join()
        self._results.clear()
        self._written.clear()

    def _replay(self, port: Port, result: Array, outputs: Targets) -> None:
        # A slot's array lives as long as its ring, nobody but this session writes it, and the
        # result is always the same: written once it stays true. A device's DMA would cost no CPU
        # time either. Known by the object, not by its address, which other memory may get later.
        port.address(outputs)
        array = outputs[port.name]
        if isinstance(array, np.ndarray) and self._written.get(id(array)) is not array:
            array[...] = result
            self._written[id(array)] = array

    def _work(self) -> None:
        # The kernel may wake a sleeper 50 us late to save power: not this thread.
        ctypes.CDLL(None).prctl(PR_SET_TIMERSLACK, 1, 0, 0, 0)
        end_s = 0.0
        while (job := self._jobs.get()) is not None:
            began_s, done = job
            end_s = max(began_s, end_s) + self._latency_s
            left_s = end_s - time.monotonic()
            if left_s > 0:
                time.sleep(left_s)
            done(None)
            del job, done

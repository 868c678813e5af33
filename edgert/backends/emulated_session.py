"""The emulated device: threads that wait for the ends of its inferences."""

from __future__ import annotations

import ctypes
import queue
import threading
import time
import weakref
from collections.abc import Mapping, Sequence
from itertools import count

import msgspec
import numpy as np

from edgert.backends.base import DeviceReport, Done, Targets, Tensors
from edgert.backends.binding import ports
from edgert.backends.emulated_faults import Step
from edgert.backends.emulated_lanes import Lanes
from edgert.backends.emulated_timing import Duration
from edgert.errors import RunError
from edgert.tensor import DTYPES, TensorSpec
from edgert.transport.address import Array

PR_SET_TIMERSLACK = 29
_OURS = {numpy_name: ours for ours, numpy_name in DTYPES.items()}
# Number of the inference, when it was asked for, where its results are, and who waits for it.
_Job = tuple[int, float, Targets, Done]


class Behaviour(msgspec.Struct, frozen=True):
    """What a device does with an inference, prepared.

    Attributes:
        lanes: Whose turn it is.
        duration: How long it takes.
        changes: What is done to its outputs at its end.
        steps: What then happens instead of a result.
    """

    lanes: Lanes
    duration: Duration
    changes: Sequence[Step] = ()
    steps: Sequence[Step] = ()


class EmulatedSession:
    """A device of known latency; see ``edgert.backends.base.Session``."""

    def __init__(
        self,
        inputs: Mapping[str, TensorSpec],
        results: Mapping[str, Array],
        device: DeviceReport,
        requests: int,
        behaviour: Behaviour,
    ) -> None:
        self.inputs = inputs
        self.outputs = {
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
        self._duration = behaviour.duration
        self._end = _in_order([*behaviour.changes, *behaviour.steps])
        self._numbers = count()
        self._jobs: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self._threads = [
            self._thread(behaviour.lanes) for _ in range(min(behaviour.lanes.count, requests))
        ]

    def start(self, inputs: Tensors, outputs: Targets, done: Done) -> None:
        """Begin one inference on the caller's memory."""
        for port in self._inputs:
            port.address(inputs)
        for port, result in self._results:
            port.address(outputs)
            array = outputs[port.name]
            if isinstance(array, np.ndarray):
                self._write(array, result)
        self._jobs.put((next(self._numbers), time.monotonic(), outputs, done))

    def close(self) -> None:
        """Wait for what is in flight and give everything back."""
        for _ in self._threads:
            self._jobs.put(None)
        for thread in self._threads:
            thread.join()
        self._results.clear()
        self._written.clear()

    def _thread(self, lanes: Lanes) -> threading.Thread:
        # Only the threads hold the lanes: the device is given back when they have ended.
        thread = threading.Thread(
            target=self._work, args=(lanes,), name="emulated-device", daemon=True
        )
        thread.start()
        return thread

    def _work(self, lanes: Lanes) -> None:
        # The kernel may wake a sleeper 50 us late to save power: not this thread.
        ctypes.CDLL(None).prctl(PR_SET_TIMERSLACK, 1, 0, 0, 0)
        while (job := self._jobs.get()) is not None:
            number, began_s, outputs, done = job
            left_s = lanes.reserve(began_s, self._duration(number)) - time.monotonic()
            if left_s > 0:
                time.sleep(left_s)
            try:
                error = self._end(number, outputs)
            except OSError as failed:  # of the device's folder
                error = RunError(self.device.actual, f"an inference failed: {failed}")
            # The caller has its memory back from here on.
            del job, outputs
            done(error)
            del done

    def _write_once(self, array: Array, result: Array) -> None:
        # A slot's array lives as long as its ring, nobody but this session writes it, and the
        # result is always the same: written once it stays true. A device's DMA would cost no CPU
        # time either. Known by the object, not by its address, which other memory may get later.
        if self._written.get(id(array)) is not array:
            array[...] = result
            self._written[id(array)] = array


def _write(array: Array, result: Array) -> None:
    array[...] = result


def _in_order(steps: Sequence[Step]) -> Step:
    """Make one step of several, up to the first that fails."""

    def end(number: int, outputs: Targets) -> RunError | None:
        for step in steps:
            error = step(number, outputs)
            if error is not None:
                return error
        return None

    return end if steps else lambda _number, _outputs: None

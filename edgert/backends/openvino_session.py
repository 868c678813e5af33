"""A compiled OpenVINO model: a pool of requests whose tensors lie over the caller's memory.

    start()   on the caller's thread: bind, start, return
    _wait     on a thread of its own: wait for the oldest inference, call ``done``

OpenVINO's own Python callback is not used: it is not called when an inference fails, and a request
that is given up while its callback returns can deadlock on Python's lock. Waiting in order costs
nothing, since frames leave a stage in order. Nothing is made for a frame once every slot of the
two rings has been seen.
"""

from __future__ import annotations

import queue
import threading
from collections import deque
from collections.abc import Mapping
from typing import Any

from edgert.backends.base import DeviceReport, Done, Fit, Signature, Targets, Tensors
from edgert.backends.binding import Port, open_names, ports, write_open
from edgert.backends.openvino_runtime import ov, reason
from edgert.errors import FrameLostError, RunError
from edgert.tensor import TensorSpec
from edgert.transport.address import Array, writable_alias

# Ring slots are few; whoever brings ever new arrays gets new tensors now and then, not a leak.
MAX_TENSORS = 1024

_Open = dict[str, Array | Fit]
_Flight = tuple[Any, _Open, Done]


class _Bound:
    """One port and the tensors that were made for it, by the address they lie at."""

    __slots__ = ("by_address", "index", "port")

    def __init__(self, index: int, port: Port) -> None:
        self.index = index
        self.port = port
        self.by_address: dict[int, Any] = {}

    def tensor(self, arrays: Targets) -> Any:
        """Return the tensor over this port's array; made once for an address."""
        address = self.port.address(arrays)
        tensor = self.by_address.get(address)
        if tensor is None:
            if len(self.by_address) >= MAX_TENSORS:
                self.by_address.clear()
            tensor = self.by_address[address] = _tensor_over(address, self.port)
        return tensor


class OpenVinoSession:
    """A compiled model; see ``edgert.backends.base.Session``."""

    def __init__(
        self, compiled: Any, signature: Signature, device: DeviceReport, requests: int
    ) -> None:
        self.inputs = signature.inputs
        self.outputs = signature.outputs
        self.device = device
        self.copied_bytes = 0
        self.requests = requests
        self._inputs = _bind(device.actual, signature.inputs)
        self._outputs = _bind(device.actual, signature.outputs)
        order = list(signature.outputs)
        self._open = {name: order.index(name) for name in open_names(signature.outputs)}
        self._idle = deque(compiled.create_infer_request() for _ in range(requests))
        self._flights: queue.SimpleQueue[_Flight | None] = queue.SimpleQueue()
        self._waiter = threading.Thread(target=self._wait, name="openvino-wait", daemon=True)
        self._waiter.start()

    def start(self, inputs: Tensors, outputs: Targets, done: Done) -> None:
        """Begin one inference on the caller's memory."""
        given = [(bound.index, bound.tensor(inputs)) for bound in self._inputs]
        wanted = [(bound.index, bound.tensor(outputs)) for bound in self._outputs]
        targets = {name: outputs[name] for name in self._open} if self._open else {}
        request = self._idle.popleft()
        for index, tensor in given:
            request.set_input_tensor(index, tensor)
        for index, tensor in wanted:
            request.set_output_tensor(index, tensor)
        request.start_async()
        self._flights.put((request, targets, done))

    def close(self) -> None:
        """Wait for what is in flight and give everything back."""
        self._flights.put(None)
        self._waiter.join()
        self._idle.clear()
        self._inputs.clear()
        self._outputs.clear()

    def _wait(self) -> None:
        while (flight := self._flights.get()) is not None:
            self._finish(*flight)
            # The next wait must not hold what the caller has long given back.
            del flight

    def _finish(self, request: Any, targets: _Open, done: Done) -> None:
        error: RunError | FrameLostError | None = None
        try:
            request.wait()
            for name, target in targets.items():
                result = request.get_output_tensor(self._open[name]).data
                self.copied_bytes += write_open(name, result, target)
        except FrameLostError as lost:
            error = lost
        except RuntimeError as failed:
            error = RunError(self.device.actual, f"an inference failed: {reason(failed)}")
        self._idle.append(request)
        done(error)


def _bind(place: str, specs: Mapping[str, TensorSpec]) -> list[_Bound]:
    order = list(specs)
    return [_Bound(order.index(port.name), port) for port in ports(place, specs)]


def _tensor_over(address: int, port: Port) -> Any:
    # OpenVINO refuses read-only arrays even as inputs, which it only reads.
    memory = writable_alias(address, port.nbytes).view(port.dtype).reshape(port.shape)
    return ov.Tensor(memory, shared_memory=True)

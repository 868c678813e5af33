"""A compiled OpenVINO model: a pool of requests whose tensors lie over the caller's memory.

    start()     on the caller's thread: bind, start, return
    _succeeded  on OpenVINO's thread, when an inference has ended well: calls ``done``
    _Watch      on a thread of its own, ten times a second: OpenVINO's Python callback is not
                called when an inference fails, so that only asking a request tells

Nothing is made for a frame once every slot of the two rings has been seen.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from edgert.backends.base import DeviceReport, Done, Fit, Signature, Targets, Tensors
from edgert.backends.binding import Port, open_names, ports, write_open
from edgert.backends.openvino_runtime import ov, reason
from edgert.errors import EdgertError, FrameLostError, RunError
from edgert.tensor import TensorSpec
from edgert.transport.slot import Array, writable_alias

WATCH_S = 0.1
# Ring slots are few; whoever brings ever new arrays gets new tensors now and then, not a leak.
MAX_TENSORS = 1024


class _Request:
    """One request of the pool and the flight it is on."""

    __slots__ = ("done", "flight", "infer", "open_targets", "seen")

    def __init__(self, infer: Any) -> None:
        self.infer = infer
        self.done: Done | None = None
        self.open_targets: dict[str, Array | Fit] = {}
        self.flight = 0
        self.seen = 0


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
        self._inputs = _bind(device.actual, signature.inputs)
        self._outputs = _bind(device.actual, signature.outputs)
        order = list(signature.outputs)
        self._open = {name: order.index(name) for name in open_names(signature.outputs)}
        self._requests = [_Request(compiled.create_infer_request()) for _ in range(requests)]
        self._idle = deque(self._requests)
        for request in self._requests:
            request.infer.set_callback(self._succeeded, request)
        self._watch = _Watch(self._requests, self._ask)
        self._watch.start()

    @property
    def requests(self) -> int:
        """How many inferences may be in flight."""
        return len(self._requests)

    def start(self, inputs: Tensors, outputs: Targets, done: Done) -> None:
        """Begin one inference on the caller's memory."""
        given = [(bound.index, bound.tensor(inputs)) for bound in self._inputs]
        wanted = [(bound.index, bound.tensor(outputs)) for bound in self._outputs]
        request = self._idle.popleft()
        infer = request.infer
        for index, tensor in given:
            infer.set_input_tensor(index, tensor)
        for index, tensor in wanted:
            infer.set_output_tensor(index, tensor)
        if self._open:
            request.open_targets = {name: outputs[name] for name in self._open}
        request.flight += 1
        request.done = done
        infer.start_async()

    def close(self) -> None:
        """Wait for what is in flight and give everything back."""
        self._watch.stop()
        for request in self._requests:
            self._ask(request, request.infer.wait)
            # The request holds its callback and this object: a circle that no collector sees.
            del request.infer
        self._requests.clear()
        self._idle.clear()
        self._inputs.clear()
        self._outputs.clear()

    def _ask(self, request: _Request, wait: Callable[[], object]) -> None:
        try:
            wait()
        except RuntimeError as error:
            failed = RunError(self.device.actual, f"an inference failed: {reason(error)}")
            self._end(request, failed)

    def _succeeded(self, request: _Request) -> None:
        error: FrameLostError | None = None
        if self._open:
            try:
                self._copy_open(request)
            except FrameLostError as lost:
                error = lost
        self._end(request, error)

    def _copy_open(self, request: _Request) -> None:
        for name, index in self._open.items():
            result = request.infer.get_output_tensor(index).data
            self.copied_bytes += write_open(name, result, request.open_targets[name])

    def _end(self, request: _Request, error: EdgertError | FrameLostError | None) -> None:
        done, request.done = request.done, None
        request.open_targets = {}
        if done is not None:
            self._idle.append(request)
            done(error)


class _Watch(threading.Thread):
    """Finds inferences that have failed."""

    def __init__(
        self,
        requests: list[_Request],
        ask: Callable[[_Request, Callable[[], object]], None],
    ) -> None:
        super().__init__(name="openvino-watch", daemon=True)
        self._pool = requests
        self._ask = ask
        self._stopped = threading.Event()

    def run(self) -> None:
        """Ask every request that has been in flight since the last round."""
        while not self._stopped.wait(WATCH_S):
            for request in self._pool:
                if request.done is not None and request.flight == request.seen:
                    self._ask(request, partial(request.infer.wait_for, 0))
                request.seen = request.flight

    def stop(self) -> None:
        """End the thread and wait for it."""
        self._stopped.set()
        self.join()


def _bind(place: str, specs: Mapping[str, TensorSpec]) -> list[_Bound]:
    order = list(specs)
    return [_Bound(order.index(port.name), port) for port in ports(place, specs)]


def _tensor_over(address: int, port: Port) -> Any:
    # OpenVINO refuses read-only arrays even as inputs, which it only reads.
    memory = writable_alias(address, port.nbytes).view(port.dtype).reshape(port.shape)
    return ov.Tensor(memory, shared_memory=True)

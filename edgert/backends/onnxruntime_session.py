"""A compiled ONNX model; inputs and outputs are bound by the address of the caller's memory."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any

from edgert.backends.base import DeviceReport, Done, Fit, Signature, Targets, Tensors
from edgert.backends.binding import open_names, ports, write_open
from edgert.backends.lanes import Lanes
from edgert.backends.onnxruntime_runtime import RAISED, reason
from edgert.errors import FrameLostError, RunError
from edgert.tensor import TensorSpec
from edgert.transport.address import Array

# One binding for each pair of slots that meet; whoever brings ever new arrays gets new ones.
MAX_BINDINGS = 1024

_Open = dict[str, Array | Fit]
_Job = tuple[Any, _Open]


class OnnxRuntimeSession:
    """A compiled model, which all lanes share; see ``edgert.backends.base.Session``.

    Args:
        session: The runtime's own.
        signature: Inputs and outputs as it has them.
        device: Where it runs.
        requests: Inferences that may be in flight.
        lanes: Inferences that are computed at once.
    """

    def __init__(
        self, session: Any, signature: Signature, device: DeviceReport, requests: int, lanes: int
    ) -> None:
        self.inputs: Mapping[str, TensorSpec] = signature.inputs
        self.outputs: Mapping[str, TensorSpec] = signature.outputs
        self.device = device
        self.copied_bytes = 0
        self.requests = requests
        self._session = session
        self._inputs = ports(device.actual, signature.inputs)
        self._outputs = ports(device.actual, signature.outputs)
        self._open = open_names(signature.outputs)
        self._order = list(signature.outputs)
        self._bindings: dict[tuple[int, ...], Any] = {}
        self._lock = threading.Lock()
        self._lanes = Lanes([self._run] * lanes, "onnxruntime", requests)

    def start(self, inputs: Tensors, outputs: Targets, done: Done) -> None:
        """Begin one inference on the caller's memory."""
        given = [port.address(inputs) for port in self._inputs]
        wanted = [port.address(outputs) for port in self._outputs]
        key = (*given, *wanted)
        binding = self._bindings.get(key)
        if binding is None:
            binding = self._bind(given, wanted, key)
        targets = {name: outputs[name] for name in self._open} if self._open else {}
        self._lanes.start((binding, targets), done)

    def close(self) -> None:
        """Wait for what is in flight and give everything back."""
        self._lanes.close()
        self._bindings.clear()
        self._session = None

    def _run(self, job: _Job) -> RunError | FrameLostError | None:
        binding, targets = job
        try:
            for name in targets:
                # Bound anew, or it would have to have the size of the last result.
                binding.bind_output(name, "cpu")
            self._session.run_with_iobinding(binding)
            if targets:
                self._copy_open(binding, targets)
        except FrameLostError as lost:
            return lost.with_traceback(None)
        except RAISED as failed:
            return RunError(self.device.actual, f"an inference failed: {reason(failed)}")
        return None

    def _copy_open(self, binding: Any, targets: _Open) -> None:
        results = binding.get_outputs()
        for name, target in targets.items():
            result = results[self._order.index(name)].numpy()
            copied = write_open(name, result, target)
            with self._lock:
                # ONNX Runtime hands its result out as a copy too.
                self.copied_bytes += copied + int(result.nbytes)

    def _bind(self, given: list[int], wanted: list[int], key: tuple[int, ...]) -> Any:
        if len(self._bindings) >= MAX_BINDINGS:
            self._bindings.clear()
        binding = self._session.io_binding()
        for port, address in zip(self._inputs, given, strict=True):
            binding.bind_input(port.name, "cpu", 0, port.dtype.type, port.shape, address)
        at = dict(zip((port.name for port in self._outputs), wanted, strict=True))
        by_name = {port.name: port for port in self._outputs}
        for name in self._order:
            if name in at:
                port = by_name[name]
                binding.bind_output(name, "cpu", 0, port.dtype.type, port.shape, at[name])
            else:
                binding.bind_output(name, "cpu")
        self._bindings[key] = binding
        return binding

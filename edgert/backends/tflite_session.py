"""A TFLite model in a pool of interpreters, each with the thread that runs it.

TFLite reads and writes memory of its own: every input and every output is copied once, into and
out of the interpreter's own tensors, and counted. LiteRT's newer API (``CompiledModel``) can write
an output over memory of ours, but refuses inputs of more than one dimension there (2.3.0) and
takes no delegates by library: the copy it would save is 0.05 ms of YOLOX-nano's 30.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, cast

import msgspec

from edgert.backends.base import ByteInput, DeviceReport, Done, Fit, Signature, Targets, Tensors
from edgert.backends.binding import Port, open_names, ports, write_open
from edgert.backends.byte_input import Write, writer
from edgert.backends.lanes import Lanes
from edgert.backends.tflite_model import named
from edgert.backends.tflite_runtime import ERRORS, reason
from edgert.errors import FrameLostError, RunError
from edgert.transport.address import Array

_Job = tuple[list[Array], dict[str, "Array | Fit"]]


class _Feed(msgspec.Struct):
    """How one input gets into an interpreter: where it is, and what writes it there."""

    tensor: Callable[[], Array]
    write: Write


class _Request:
    """One interpreter with its tensors allocated."""

    def __init__(
        self, interpreter: Any, own: Signature, conversions: Mapping[str, ByteInput]
    ) -> None:
        self.interpreter = interpreter
        inputs = named(interpreter.get_input_details(), "input")
        outputs = named(interpreter.get_output_details(), "output")
        self._feeds = [
            _Feed(interpreter.tensor(inputs[name]["index"]), writer(spec, conversions.get(name)))
            for name, spec in own.inputs.items()
        ]
        self._results = {name: interpreter.tensor(outputs[name]["index"]) for name in own.outputs}

    def run(self, given: Sequence[Array], targets: Mapping[str, Array | Fit]) -> int:
        """Run one inference; return how many bytes were moved for it.

        No view of a tensor may outlive its line: TFLite refuses to run while there is one.
        """
        copied = 0
        for feed, array in zip(self._feeds, given, strict=True):
            view = feed.tensor()
            feed.write(view, array)
            copied += view.nbytes
            del view
        self.interpreter.invoke()
        for name, target in targets.items():
            copied += write_open(name, self._results[name](), target)
        return copied


class TfliteSession:
    """A pool of interpreters, one a lane; see ``edgert.backends.base.Session``.

    Args:
        interpreters: One for each inference that is computed at once, with tensors allocated.
        own: Inputs and outputs as the model has them.
        seen: The same as callers see them.
        conversions: Inputs that are given as bytes.
        device: Where it runs.
        requests: Inferences that may be in flight.
    """

    def __init__(  # noqa: PLR0913  what a session is made of
        self,
        interpreters: Sequence[Any],
        own: Signature,
        seen: Signature,
        conversions: Mapping[str, ByteInput],
        device: DeviceReport,
        requests: int,
    ) -> None:
        self.inputs = seen.inputs
        self.outputs = seen.outputs
        self.device = device
        self.copied_bytes = 0
        self.requests = requests
        self._inputs = ports(device.actual, seen.inputs)
        self._outputs = ports(device.actual, seen.outputs)
        self._open = open_names(seen.outputs)
        self._lock = threading.Lock()
        runs = [
            partial(self._run, _Request(interpreter, own, conversions))
            for interpreter in interpreters
        ]
        self._lanes = Lanes(runs, "tflite", requests)

    def start(self, inputs: Tensors, outputs: Targets, done: Done) -> None:
        """Begin one inference on the caller's memory."""
        given = [_fitting(port, inputs) for port in self._inputs]
        targets: dict[str, Array | Fit] = {
            port.name: _fitting(port, outputs) for port in self._outputs
        }
        for name in self._open:
            targets[name] = outputs[name]
        self._lanes.start((given, targets), done)

    def close(self) -> None:
        """Wait for what is in flight and give everything back."""
        self._lanes.close()

    def _run(self, request: _Request, job: _Job) -> RunError | FrameLostError | None:
        try:
            copied = request.run(*job)
        except FrameLostError as lost:
            # Its traceback holds a view of a tensor, see ``_Request.run``.
            return lost.with_traceback(None)
        except ERRORS as failed:
            return RunError(self.device.actual, f"an inference failed: {reason(failed)}")
        with self._lock:
            self.copied_bytes += copied
        return None


def _fitting(port: Port, arrays: Tensors | Targets) -> Array:
    port.address(arrays)  # proves that it is an array, and fits
    return cast("Array", arrays[port.name])

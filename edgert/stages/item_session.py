"""Frames of several items: each row of what arrives is an input of its own.

A stage such as ``preprocess.crops`` writes as many rows as it found things; the model takes one.
Its outputs come back as rows again, so a frame stays one token, nothing is inferred that is not
there, and a device that wants fixed shapes gets one.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import cast

import msgspec

from edgert.backends.base import DeviceReport, Done, Fit, Session, Targets, Tensors
from edgert.errors import DeviceError, Fault
from edgert.models.describe import ModelDescription
from edgert.tensor import PortSpec, TensorSpec
from edgert.transport.address import Array

# The attribute of a port whose frames have several items: the most there may be.
ITEMS = "items"


def most_items(port: PortSpec) -> int:
    """Return how many items a frame on a port may have; 0 where a frame is one."""
    most: int = port.attributes.get(ITEMS, 0)
    return most


def one_item(port: PortSpec) -> PortSpec:
    """Return what a model sees of a port: one item at a time."""
    if not most_items(port):
        return port
    return msgspec.structs.replace(port, tensors=_all_rows(port.tensors, 1))


def many_items(tensors: Mapping[str, TensorSpec], most: int) -> dict[str, TensorSpec]:
    """Return outputs for one item as those for many."""
    return _all_rows(tensors, most)


def item_faults(model: ModelDescription, place: str, *, is_fixed: bool) -> list[Fault]:
    """Find what keeps a model from taking one item at a time.

    Args:
        model: The model.
        place: The place of errors.
        is_fixed: Whether the file asks neither for batches nor for several shapes.
    """
    if not is_fixed:
        fault = "what arrives are items, which are inferred one by one in one shape"
        return [Fault(place, fault, "Remove 'batch', and give one size for each dimension")]
    mend = "Fix the first dimension of its inputs to 1 by 'shape'"
    return [
        Fault(place, f"{name!r} of model {model.name!r} is {spec}, and items come one by one", mend)
        for name, spec in (*model.inputs.items(), *model.outputs.items())
        if not spec.is_static or not spec.shape or spec.shape[0] != 1
    ]


class ItemSession:
    """A session for frames of several items, each of which is an inference of ``one``.

    A frame has as many items at work as ``one`` has requests, so one frame at a time is enough.
    ``outputs`` show None for the rows; the ``Fit`` given is asked for as many as a frame has.
    """

    requests = 1

    def __init__(self, one: Session) -> None:
        self.inputs: Mapping[str, TensorSpec] = _all_rows(one.inputs, None)
        self.outputs: Mapping[str, TensorSpec] = _all_rows(one.outputs, None)
        self.device: DeviceReport = one.device
        self._one = one

    @property
    def copied_bytes(self) -> int:
        """Bytes moved by the session beneath."""
        return self._one.copied_bytes

    def start(self, inputs: Tensors, outputs: Targets, done: Done) -> None:
        """Infer each item of one frame; a frame without any is done at once."""
        given = {name: inputs[name] for name in self.inputs}
        count = len(next(iter(given.values())))
        rooms = {
            name: cast("Fit", outputs[name])((count, *(size or 0 for size in spec.shape[1:])))
            for name, spec in self.outputs.items()
        }
        if count:
            _Flight(self._one, given, rooms, count, done).begin()
        else:
            done(None)

    def close(self) -> None:
        """Wait for what is in flight and give everything back."""
        self._one.close()


class _Flight:
    """The items of one frame on their way through a session."""

    def __init__(
        self,
        session: Session,
        inputs: Tensors,
        outputs: Mapping[str, Array],
        count: int,
        done: Done,
    ) -> None:
        self._session, self._done = session, done
        self._inputs, self._outputs = dict(inputs), dict(outputs)
        self._count, self._next, self._ended = count, 0, 0
        self._error: BaseException | None = None
        self._lock = threading.Lock()

    def begin(self) -> None:
        """Start as many items as may be in flight; each that ends starts another."""
        for _ in range(min(self._session.requests, self._count)):
            self._start_next()

    def _start_next(self) -> None:
        with self._lock:
            item = self._next
            if item >= self._count:
                return
            self._next = item + 1
        row = slice(item, item + 1)
        inputs = {name: array[row] for name, array in self._inputs.items()}
        outputs = {name: array[row] for name, array in self._outputs.items()}
        try:
            self._session.start(inputs, outputs, self._end_one)
        except DeviceError as error:  # we may be in a thread of the runtime's, which must go on
            self._end_one(error)

    def _end_one(self, error: BaseException | None) -> None:
        with self._lock:
            self._ended += 1
            self._error = self._error or error
            if error is not None:
                self._count = self._next  # those that wait need not begin
            is_last = self._ended == self._count
        if not is_last:
            self._start_next()
            return
        # Nothing may hold what the caller gets back now.
        self._inputs.clear()
        self._outputs.clear()
        self._done(self._error)


def _all_rows(tensors: Mapping[str, TensorSpec], rows: int | None) -> dict[str, TensorSpec]:
    return {
        name: msgspec.structs.replace(spec, shape=(rows, *spec.shape[1:]))
        for name, spec in tensors.items()
    }

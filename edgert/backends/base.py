"""The narrow interface behind which every inference runtime stands.

A backend lists its devices, reads a model's signature and compiles a model into a session; a
session runs requests on memory that the caller owns. Each backend module is the only one that
imports its vendor's library, and is imported only in the process that uses it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any, Protocol, runtime_checkable

import msgspec

from edgert.tensor import TensorSpec
from edgert.transport.address import Array

Tensors = Mapping[str, Array]
# How room is got for an output whose size is known only after the inference: called with the shape
# of this frame's result; raises FrameLostError if there is not so much room.
Fit = Callable[[tuple[int, ...]], Array]
Targets = Mapping[str, Array | Fit]
Done = Callable[[BaseException | None], None]


class Signature(msgspec.Struct, frozen=True):
    """Inputs and outputs of a model, in the model's order; None in a shape is an open dimension."""

    inputs: dict[str, TensorSpec]
    outputs: dict[str, TensorSpec]


class ByteInput(msgspec.Struct, frozen=True):
    """How the bytes that arrive become an input of a model: in the model itself.

    For each channel ``value = (byte * scale - mean) / std``, in the element type of the model.

    Attributes:
        layout: ``NCHW`` or ``NHWC``: where the channels are.
        scale: Factor on the bytes, first.
        mean: Subtracted next: none, one number, or one for each channel.
        std: Divided by last: none, one number, or one for each channel.
    """

    layout: str
    scale: float = 1.0
    mean: tuple[float, ...] = ()
    std: tuple[float, ...] = ()


class CompileRequest(msgspec.Struct, frozen=True):
    """What is to be compiled, and how.

    Attributes:
        path: The model file (for formats of several files: the one that is named), or the folder of
            a SavedModel.
        device: The device in the backend's own words, without the backend's name: ``CPU``, ``NPU``.
        shapes: Sizes for inputs that the model leaves open, by input name.
        requests: Requests that will be in flight at once, at least 1.
        threads: Threads the runtime may use on the CPU, at least 1.
        precision: ``f32`` (as exact as the CPU can), or ``device`` (what the device likes best).
        options: Further options of the backend's own; unknown ones are faults.
        cache_dir: Folder for compiled models; empty for none. A bad cache is never fatal.
        bytes: Inputs that are given as u8 of the model's own shape. The conversion is compiled into
            the model, and the session's ``inputs`` show u8 for them.
        whole: Refuse where the device does not take the whole model; otherwise the CPU may compute
            what it leaves, and ``DeviceReport.placed`` says how much it took.
    """

    path: str
    device: str
    shapes: dict[str, list[int]] = {}
    requests: int = 1
    threads: int = 1
    precision: str = "f32"
    options: dict[str, Any] = {}
    cache_dir: str = ""
    bytes: dict[str, ByteInput] = {}
    whole: bool = False

    @property
    def lanes(self) -> int:
        """Inferences that the CPU computes at once: what is in flight beyond them waits, ready."""
        return min(self.requests, self.threads)

    @property
    def threads_per_lane(self) -> int:
        """Threads that compute one inference on the CPU."""
        return self.threads // self.lanes


class DeviceReport(msgspec.Struct, frozen=True):
    """Where a session really runs, read back from the runtime, never assumed.

    Attributes:
        requested: What the pipeline file asked for, for example ``openvino:NPU``.
        actual: ``backend:DEVICE`` as read back; an emulated device is named as such.
        precision: Element type that inference computes in, as read back; ``unknown`` if it is not.
        runtime: Name and version of the runtime.
        emulated: Whether a stand-in does the work.
        refused: Why each other device that was tried refused, or how it failed while it ran.
        failed: How this one failed while it ran, where it was opened again after that.
        placed: How much of the model the device took, where a runtime may split it between the
            device and the CPU: ``61 of 68 operators``, or ``unknown``.
    """

    requested: str
    actual: str
    precision: str
    runtime: str
    emulated: bool = False
    refused: dict[str, str] = {}
    placed: str = ""
    failed: str = ""


class DeviceFacts(msgspec.Struct, frozen=True):
    """What a runtime says of one of its devices; empty where it says nothing.

    Attributes:
        name: What the hardware is called.
        driver: Version of its driver.
    """

    name: str = ""
    driver: str = ""


class Session(Protocol):
    """A compiled model and its pool of requests. Nothing is created per inference."""

    inputs: Mapping[str, TensorSpec]
    outputs: Mapping[str, TensorSpec]
    device: DeviceReport

    @property
    def copied_bytes(self) -> int:
        """Bytes moved because the runtime's API could not use the caller's memory."""
        ...

    @property
    def requests(self) -> int:
        """How many inferences may be in flight."""
        ...

    def start(self, inputs: Tensors, outputs: Targets, done: Done) -> None:
        """Begin one inference on the caller's memory.

        The runtime reads ``inputs`` (which may be read-only) and writes ``outputs`` in place; both
        belong to the session until ``done`` is called, once, from any thread, with the error or
        None. Callers never have more than ``requests`` in flight. Arrays over the same memory come
        again and again: what is made for an address is kept and used again. The session must not
        keep a reference to an array of ``inputs`` after ``done`` (wrap its address instead).

        An output that is open in ``outputs`` of this session (None in its shape) is the exception:
        its result is copied, into what ``Fit`` returns or into an array of exactly its shape, and
        counted; where it does not fit, ``done`` gets a FrameLostError. Only there a ``Fit`` may be
        given.

        Raises:
            DeviceError: An array does not fit the signature.
        """
        ...

    def close(self) -> None:
        """Wait for what is in flight and give everything back."""
        ...


class Backend(Protocol):
    """One runtime."""

    name: str

    def version(self) -> str:
        """Name and version of the runtime, for example ``openvino 2026.4.1``."""
        ...

    def devices(self) -> tuple[str, ...]:
        """Devices that the runtime really has here."""
        ...

    def signature(self, path: str, shapes: Mapping[str, list[int]]) -> Signature:
        """Read a model's inputs and outputs after fixing ``shapes``.

        Raises:
            ModelError: It is not a model this runtime reads, or ``shapes`` does not fit.
        """
        ...

    def compile(self, request: CompileRequest) -> Session:
        """Compile a model for one device and prove where it landed.

        Raises:
            DeviceError: The device is not here or refuses the model; the reason in its words.
            ModelError: The file is not a model this runtime reads.
        """
        ...


@runtime_checkable
class DescribesDevices(Protocol):
    """A backend that can say more of its devices than their names: ``edgert devices`` shows it."""

    def describe(self, device: str) -> DeviceFacts:
        """Return the facts of a device that ``devices()`` names."""
        ...


@runtime_checkable
class NamesOptions(Protocol):
    """A backend that can name a device's options before it is opened: ``edgert check`` asks it."""

    def option_names(self, device: str) -> Collection[str]:
        """Return the name of every option that ``compile`` takes for a device.

        Raises:
            DeviceError: The device is not here.
        """
        ...

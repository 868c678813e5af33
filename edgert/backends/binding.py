"""What the sessions of all runtimes need: does an array fit, where does it lie, open outputs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from edgert.backends.base import Fit, Targets
from edgert.errors import DeviceError, FrameLostError, ModelError
from edgert.tensor import DTYPES, TensorSpec
from edgert.transport.address import Array, address_of


class Port:
    """One input or output of a session whose shape is known."""

    __slots__ = ("dtype", "name", "nbytes", "place", "shape", "spec")

    def __init__(self, place: str, name: str, spec: TensorSpec) -> None:
        self.place = place
        self.name = name
        self.spec = spec
        self.shape = tuple(size or 0 for size in spec.shape)
        self.dtype: np.dtype[Any] = np.dtype(DTYPES[spec.dtype])
        self.nbytes = spec.nbytes

    def address(self, arrays: Targets) -> int:
        """Return the address of this port's array after proving that it fits.

        Raises:
            DeviceError: It is missing, or its type, shape or layout does not fit.
        """
        array = arrays.get(self.name)
        if (
            not isinstance(array, np.ndarray)
            or array.shape != self.shape
            or array.dtype != self.dtype
            or not array.flags.c_contiguous
        ):
            raise self._misfit(array)
        return address_of(array)

    def _misfit(self, array: object) -> DeviceError:
        given = "nothing"
        if isinstance(array, np.ndarray):
            layout = "" if array.flags.c_contiguous else ", not contiguous"
            given = f"{array.dtype}{list(array.shape)}{layout}"
        return DeviceError(
            f"{self.place}, tensor {self.name!r}",
            f"the model has {self.spec} there and was given {given}",
        )


def ports(place: str, specs: Mapping[str, TensorSpec]) -> list[Port]:
    """Return a port for each tensor whose shape is known, in order."""
    return [Port(place, name, spec) for name, spec in specs.items() if spec.is_static]


def open_names(specs: Mapping[str, TensorSpec]) -> list[str]:
    """Name the tensors whose size is not known before the inference, in order."""
    return [name for name, spec in specs.items() if not spec.is_static]


def refuse_open_inputs(model: str, inputs: Mapping[str, TensorSpec]) -> None:
    """Refuse a model whose inputs have no fixed size, which no device can be warmed up for.

    Raises:
        ModelError: An input is open; the line to add is named.
    """
    for name in open_names(inputs):
        sizes = ", ".join("N" if size is None else str(size) for size in inputs[name].shape)
        raise ModelError(
            f"model {model!r}, input {name!r}",
            f"the model leaves its size open: {inputs[name]}",
            f"Fix it: 'shape: {{{name}: [{sizes}]}}' with a number for each N",
        )


def write_open(name: str, result: Array, target: Array | Fit) -> int:
    """Copy a result whose size was not known before into its place; return the bytes copied.

    Raises:
        FrameLostError: There is not so much room.
    """
    shape = tuple(result.shape)
    array = target if isinstance(target, np.ndarray) else target(shape)
    if array.shape != shape:
        raise FrameLostError(
            f"output {name!r} has shape {list(shape)} in this frame, "
            f"its array has {list(array.shape)}"
        )
    array[...] = result
    return int(result.nbytes)

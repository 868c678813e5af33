"""Inputs given as bytes: what a backend builds in before the model, and what its session shows."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

import msgspec
import numpy as np

from edgert.backends.base import ByteInput, Signature
from edgert.errors import ModelError
from edgert.tensor import TensorSpec
from edgert.transport.address import Array

CONVERTIBLE = ("f16", "f32")
Write = Callable[[Array, Array], None]
_CHANNEL_AXIS = {"NCHW": 1, "NHWC": 3}


def with_bytes(signature: Signature, given: Mapping[str, ByteInput], model: str) -> Signature:
    """Return the signature that callers see: u8 for the inputs that are given as bytes.

    Raises:
        ModelError: There is no such input, or bytes cannot become it.
    """
    if not given:
        return signature
    inputs = dict(signature.inputs)
    for name, conversion in given.items():
        own = require_convertible(name, inputs.get(name), conversion, model)
        inputs[name] = TensorSpec("u8", own.shape)
    return msgspec.structs.replace(signature, inputs=inputs)


def factor_and_offset(conversion: ByteInput) -> tuple[Array, Array] | None:
    """Return f32 arrays of four dimensions, ``value = byte * factor + offset``; None to leave it.

    One product and one sum instead of three steps: they cost a pass over the input each.
    """
    mean = np.array(conversion.mean or (0.0,))
    std = np.array(conversion.std or (1.0,))
    factor, offset = np.broadcast_arrays(conversion.scale / std, -mean / std)
    if (factor == 1).all() and (offset == 0).all():
        return None
    shape = [1, 1, 1, 1]
    shape[_CHANNEL_AXIS[conversion.layout]] = factor.size
    return factor.astype(np.float32).reshape(shape), offset.astype(np.float32).reshape(shape)


def require_convertible(
    name: str, spec: TensorSpec | None, conversion: ByteInput, model: str
) -> TensorSpec:
    """Return the model's own input after proving that bytes can become it.

    Raises:
        ModelError: There is no such input, or they cannot.
    """
    place = f"model {model!r}, bytes"
    if spec is None:
        raise ModelError(place, f"it has no input {name!r}")
    axis = _CHANNEL_AXIS.get(conversion.layout)
    if spec.dtype not in CONVERTIBLE or len(spec.shape) != 4 or axis is None:
        said = f"bytes as {conversion.layout} cannot become its input {name!r}, which is {spec}"
        raise ModelError(place, said)
    for values in (conversion.mean, conversion.std):
        if len(values) not in (0, 1, spec.shape[axis]):
            said = f"{len(values)} values are given for the channels of its input {name!r}, {spec}"
            raise ModelError(place, said)
    return spec


def writer(own: TensorSpec, conversion: ByteInput | None) -> Write:
    """Return what writes an array into a model's own input, bytes converted on the way."""
    values = None if conversion is None else factor_and_offset(conversion)
    if values is None:
        return np.copyto
    factor, offset = values
    if not offset.any():
        return partial(_scale, factor)
    # Half floats get rounded once, at the end.
    floats = np.empty([size or 0 for size in own.shape], np.float32) if own.dtype == "f16" else None
    return partial(_scale_and_shift, factor, offset, floats)


def _scale(factor: Array, view: Array, given: Array) -> None:
    np.multiply(given, factor, out=view, casting="same_kind")


def _scale_and_shift(
    factor: Array, offset: Array, floats: Array | None, view: Array, given: Array
) -> None:
    product = view if floats is None else floats
    np.multiply(given, factor, out=product)
    np.add(product, offset, out=view, casting="same_kind")

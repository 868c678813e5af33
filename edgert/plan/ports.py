"""What arrives on an input port that several edges feed: the upper bound of them all."""

from __future__ import annotations

from collections.abc import Sequence

from edgert.errors import UserError
from edgert.tensor import PortSpec, TensorSpec


def merge_ports(ports: Sequence[PortSpec], place: str) -> PortSpec:
    """Return one port that is large enough for what each of ``ports`` carries.

    Images of several sizes and formats merge; tensors must agree in type and dimensions.

    Raises:
        UserError: They do not fit together.
    """
    first = ports[0]
    tensors = dict(first.tensors)
    for port in ports[1:]:
        if port.attributes.get("labels") != first.attributes.get("labels"):
            raise UserError(
                place,
                "its edges carry classes of different labels",
                "Give each its own stage",
            )
        for name, spec in port.tensors.items():
            tensors[name] = _larger(tensors[name], spec, place, name) if name in tensors else spec
        if port.attributes.get("byte_inputs") != first.attributes.get("byte_inputs"):
            raise UserError(
                place,
                "its edges carry bytes that the model would have to convert in different ways",
                "Write 'convert: here' at the stages that make them",
            )
    metadata_bytes = max(port.metadata_bytes for port in ports)
    return PortSpec(first.kind, tensors, metadata_bytes, first.attributes)


def _larger(one: TensorSpec, other: TensorSpec, place: str, name: str) -> TensorSpec:
    if one.dtype != other.dtype or len(one.shape) != len(other.shape):
        raise UserError(
            place,
            f"its edges carry tensor '{name}' as {one} and as {other}",
            "Give each its own stage",
        )
    sizes = zip(one.shape, other.shape, strict=True)
    return TensorSpec(one.dtype, tuple(max(a or 0, b or 0) for a, b in sizes))

"""What a stage's ``plan`` says that its outputs carry, looked at before rings are sized by it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from edgert.pipeline.near import choices
from edgert.tensor import DTYPES, PortSpec, TensorSpec
from edgert.transport.header import MAX_DIMENSIONS


def faults_of(given: object, outputs: Mapping[str, str]) -> Iterator[str]:
    """Say what no ring can be made of.

    Args:
        given: What ``plan`` returned, of whatever type.
        outputs: The outputs that its class declares, with their kinds.
    """
    if not isinstance(given, Mapping):
        yield f"it returns {type(given).__name__}, not a dict of a PortSpec for each output"
        return
    for written, kind in outputs.items():
        name = written.rstrip("?")
        if name not in given:
            yield f"it says nothing of output '{name}'"
            continue
        port = given[name]
        if not isinstance(port, PortSpec):
            yield f"output '{name}' is {type(port).__name__}, not PortSpec"
            continue
        if port.kind != kind:
            yield f"output '{name}' is declared as {kind}, and planned as {port.kind}"
        for tensor, spec in port.tensors.items():
            yield from _faults_of_tensor(f"output '{name}', tensor '{tensor}'", spec)


def _faults_of_tensor(place: str, spec: TensorSpec) -> Iterator[str]:
    if spec.dtype not in DTYPES:
        yield f"{place}: there is no element type '{spec.dtype}' ({_near(spec.dtype)})"
    if len(spec.shape) > MAX_DIMENSIONS:
        yield f"{place}: {len(spec.shape)} dimensions are more than {MAX_DIMENSIONS}"
    if not all(isinstance(size, int) and size >= 0 for size in spec.shape):
        yield f"{place}: {list(spec.shape)} is no largest shape of whole numbers"


def _near(dtype: str) -> str:
    ours = {numpy: name for name, numpy in DTYPES.items()}
    return f"write {ours[dtype]}" if dtype in ours else choices(dtype, DTYPES, "there are")

"""TFLite: the built-in kernels, XNNPACK, or any delegate; what a delegate took is read back."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from edgert.backends import tflite_delegates as delegates
from edgert.backends.tflite_model import allocate, declared, named, open_model
from edgert.backends.tflite_runtime import ERRORS, reason, version_of_package
from edgert.coverage.adapter import Answer, Facts, Work
from edgert.coverage.adapters.tflite_macs import node_macs
from edgert.coverage.adapters.timing import median_ms
from edgert.coverage.graph import Graph, GraphNode, crossings, placed, tensor_names
from edgert.coverage.placement import placement_of
from edgert.coverage.record import Node, Placement
from edgert.coverage.values import Value, Values, load
from edgert.errors import DeviceError, EdgertError

_CPU = "CPU"
_XNNPACK = "XNNPACK"
_UNSUPPORTED = (
    "Didn't find op for builtin opcode",
    "unresolved custom op",
    "Unsupported data type",
)


class TfliteAdapter:
    """One way TFLite runs a model.

    Args:
        device: ``CPU`` (its own kernels), ``XNNPACK``, or a delegate as in a pipeline file.
        options: Of the delegate.
    """

    def __init__(self, device: str, options: dict[str, Any]) -> None:
        self._device = device.upper() if device.upper() in (_CPU, _XNNPACK) else device
        self._options = options

    def facts(self) -> Facts:
        """Say whether the delegate can be made here: a library that loads proves nothing."""
        versions = {"tflite": version_of_package()}
        try:
            self._delegates()
        except EdgertError as error:
            fault = error.faults[0]
            return Facts(
                evidence="unavailable",
                versions=versions,
                formats=("tflite",),
                computes=False,
                reason=fault.fault,
                mend=fault.mend,
            )
        return Facts(evidence="hardware", versions=versions, formats=("tflite",), computes=True)

    def ask(self, work: Work) -> tuple[Answer, Values]:
        """Make an interpreter, read back what a delegate took, and run it."""
        try:
            interpreter = open_model(
                work.path, 1, xnnpack=self._device == _XNNPACK, delegates=self._delegates()
            )
            interpreter.allocate_tensors()
        except (*ERRORS, EdgertError) as error:
            said = error.faults[0].fault if isinstance(error, EdgertError) else reason(error)
            if any(sign in said for sign in _UNSUPPORTED):
                return Answer(placement="rejected", unsupported=True, reason=said), {}
            raise
        answer = self._answer(interpreter)
        if not work.inputs:
            return answer, {}
        outputs, latency_ms = _run(interpreter, load(Path(work.inputs)), work.runs)
        return msgspec.structs.replace(answer, latency_ms=latency_ms), outputs

    def _delegates(self) -> list[Any]:
        if self._device in (_CPU, _XNNPACK):
            return []
        place = f"tflite:{self._device}"
        found = delegates.find(self._device)
        if found is None:
            known = ", ".join((_CPU, _XNNPACK, *delegates.DELEGATES))
            raise DeviceError(place, "there is no such delegate", f"TFLite has: {known}")
        return [delegates.load(found, self._options, place)]

    def _answer(self, interpreter: Any) -> Answer:
        found = delegates.operators(interpreter)
        if found is None:
            return Answer(placement="unknown", reason="this TFLite does not tell what runs where")
        here = {
            _node_name(each): Node(
                name=_node_name(each), operator=each.name, placement=self._where(each)
            )
            for each in found
        }
        graph = _graph(interpreter, found)
        nodes = placed(graph, here)
        crossing = crossings(graph, nodes)
        return Answer(placement=placement_of(nodes), nodes=nodes, crossings=crossing)

    def _where(self, operator: delegates.Operator) -> Placement:
        return "device" if operator.taken or self._device == _CPU else "cpu"


def read_graph(path: str) -> Graph:
    """Return the graph of a file.

    Raises:
        RuntimeError: This TFLite does not tell it.
    """
    interpreter = open_model(path, 1, xnnpack=False, delegates=[])
    allocated = allocate(interpreter, {}, path)
    found = delegates.operators(interpreter)
    if found is None:
        raise RuntimeError("this TFLite does not tell a model's operators")
    return _graph(interpreter, found, allocated=allocated)


def _node_name(operator: delegates.Operator) -> str:
    return f"{operator.name}#{operator.number}"


def _graph(interpreter: Any, found: list[delegates.Operator], *, allocated: bool = True) -> Graph:
    """Return the graph; constants are tensors that no operator makes, and so do not cross."""
    tensors = interpreter.get_tensor_details()
    shapes = {each["index"]: _shape(each, allocated=allocated) for each in tensors}

    names = tensor_names({each["index"]: each["name"] for each in tensors})

    def of(numbers: tuple[int, ...]) -> list[tuple[int, ...] | None]:
        return [shapes.get(number) for number in numbers]

    nodes = [
        GraphNode(
            name=_node_name(each),
            operator=each.name,
            inputs=tuple(names[tensor] for tensor in each.inputs if tensor in names),
            outputs=tuple(names[tensor] for tensor in each.outputs if tensor in names),
            macs=node_macs(each.name, of(each.inputs), of(each.outputs)),
        )
        for each in found
    ]
    sizes = {
        names[tensor["index"]]: prod(shape) * np.dtype(tensor["dtype"]).itemsize
        for tensor in tensors
        if (shape := shapes[tensor["index"]]) is not None
        and np.dtype(tensor["dtype"]).kind in "biuf"
    }
    return Graph(nodes=nodes, sizes=sizes)


def _shape(detail: Mapping[str, Any], *, allocated: bool) -> tuple[int, ...] | None:
    """Return the sizes of a tensor; before memory is allocated open ones are not known."""
    if not allocated and -1 in declared(detail):
        return None
    return tuple(map(int, detail["shape"]))


def _run(interpreter: Any, inputs: Values, runs: int) -> tuple[dict[str, Value], float | None]:
    for name, detail in named(interpreter.get_input_details(), "input").items():
        interpreter.set_tensor(detail["index"], inputs[name])
    interpreter.invoke()
    outputs: dict[str, Value] = {
        name: np.array(interpreter.get_tensor(detail["index"]))
        for name, detail in named(interpreter.get_output_details(), "output").items()
    }
    return outputs, median_ms(interpreter.invoke, runs)

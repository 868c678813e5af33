"""Vela: Arm's compiler for Ethos-U says of every operator whether the NPU takes it, and why not.

It compiles and computes nothing, so there are no numbers. Runs in Vela's own environment, whose
reader of TFLite files is used here, too.
"""

from __future__ import annotations

import importlib.metadata
import os
import re
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from math import prod
from pathlib import Path
from typing import IO, Any

from edgert.coverage.adapter import Answer, Facts, Work
from edgert.coverage.adapters.tflite_macs import node_macs
from edgert.coverage.graph import Graph, GraphNode, crossings, placed, tensor_names
from edgert.coverage.placement import placement_of
from edgert.coverage.record import Node
from edgert.coverage.values import Values

_ACCELERATOR = re.compile(r"ethos-u(55-(32|64|128|256)|65-(256|512)|85-(128|256|512|1024|2048))")
_REFUSED = re.compile(
    r"^Warning \((?:supported|TFLite|semantic)[^)]*\)[^\n]*?operator: (?P<operator>\S+), "
    r"ofm: '(?P<output>[^']*)'\nReason: (?P<reason>(?:[^\n]+\n?)+)",
    re.MULTILINE,
)
_SAYING = (1, 2)
# How it gives up on a type that the NPU has not: it says so, or what it would put around the
# operator cannot be done.
_UNSUPPORTED = ("Does not have valid TFLite Semantics", "could not run on NPU")
_BYTES = {0: 4, 1: 2, 2: 4, 3: 1, 4: 8, 6: 1, 7: 2, 9: 1, 10: 8}  # of TFLite's TensorType


class VelaAdapter:
    """One configuration of Ethos-U.

    Args:
        device: As Vela names it: ``ethos-u65-256``.
        options: None are known.
    """

    def __init__(self, device: str, options: dict[str, Any]) -> None:
        self._device = device
        self._options = options

    def facts(self) -> Facts:
        """Say whether Vela knows this configuration."""
        versions = {"vela": importlib.metadata.version("ethos-u-vela")}
        known = _ACCELERATOR.fullmatch(self._device) is not None
        if known and not self._options:
            return Facts(
                evidence="vendor-compiler", versions=versions, formats=("tflite",), computes=False
            )
        return Facts(
            evidence="unavailable",
            versions=versions,
            formats=("tflite",),
            computes=False,
            reason=f"Vela has no accelerator '{self._device}'"
            if not known
            else f"it has no option {', '.join(self._options)}",
            mend="For example ethos-u55-128, ethos-u65-256, ethos-u85-512" if not known else "",
        )

    def ask(self, work: Work) -> tuple[Answer, Values]:
        """Compile a model, and read what stayed on the CPU and why."""
        said, fault = _compile(work.path, self._device)
        refused = refusals(said)
        if any(sign in fault for sign in _UNSUPPORTED):
            reason = "; ".join([*dict.fromkeys(refused.values()), _short(fault)])
            return Answer(placement="rejected", unsupported=True, reason=reason), {}
        if fault:
            raise RuntimeError(fault)
        graph, names = read_graph(Path(work.path))
        here = {node.name: _node(node, names[node.name], refused) for node in graph.nodes}
        nodes = placed(graph, here)
        answer = Answer(
            placement=placement_of(nodes), nodes=nodes, crossings=crossings(graph, nodes)
        )
        return answer, {}


def _compile(path: str, device: str) -> tuple[str, str]:
    """Compile a model; return what Vela said, and why it gave up (empty where it did not).

    In this process, which is the child of this adapter: starting Vela takes far longer than
    compiling an operator. Its core is C++ and writes past Python, so the fds themselves are turned.
    """
    from ethosu.vela.vela import main

    fault = ""
    with tempfile.TemporaryDirectory(prefix="edgert-vela-") as folder, _heard() as heard:
        code: object = 0
        try:
            code = main([path, "--accelerator-config", device, "--output-dir", folder])
        except RuntimeError as error:
            fault = " ".join(str(error).split()) or "it gave no reason"
        except SystemExit as end:
            code = end.code
        said = heard()
    if code:
        lines = said.strip().splitlines()
        fault = lines[-1] if lines else f"vela ended with exit code {code}"
    return said, fault


def _short(fault: str) -> str:
    """Leave out where in Vela it was."""
    said = fault.removeprefix("Compilation failed: Error: ")
    return said.removesuffix("Failed to parse TFLite file").strip(" ,")


@contextmanager
def _heard() -> Iterator[Callable[[], str]]:
    """Turn what is written to standard output and error into what a function returns."""
    with tempfile.TemporaryFile() as file:
        before = [os.dup(fd) for fd in _SAYING]
        try:
            for fd in _SAYING:
                os.dup2(file.fileno(), fd)
            yield lambda: _read(file)
        finally:
            for fd, kept in zip(_SAYING, before, strict=True):
                os.dup2(kept, fd)
                os.close(kept)


def _read(file: IO[bytes]) -> str:
    sys.stdout.flush()
    sys.stderr.flush()
    file.seek(0)
    return file.read().decode(errors="replace")


def refusals(said: str) -> dict[str, str]:
    """Return what Vela keeps off the NPU: name of the first output -> the reason, on one line."""
    return {
        found["output"]: "; ".join(found["reason"].strip().splitlines())
        for found in _REFUSED.finditer(said)
    }


def read_graph(path: Path) -> tuple[Graph, dict[str, str]]:
    """Return the graph of a TFLite file, and of each node the name of its first output."""
    from ethosu.vela.tflite.BuiltinOperator import BuiltinOperator
    from ethosu.vela.tflite.Model import Model

    kinds = {code: name for name, code in vars(BuiltinOperator).items() if name.isupper()}
    model = Model.GetRootAs(path.read_bytes(), 0)
    part = model.Subgraphs(0)
    tensors = [part.Tensors(number) for number in range(part.TensorsLength())]
    called = tensor_names({n: tensor.Name().decode() for n, tensor in enumerate(tensors)})
    nodes, names = [], {}
    for number in range(part.OperatorsLength()):
        operator = part.Operators(number)
        code = model.OperatorCodes(operator.OpcodeIndex())
        kind = kinds.get(max(code.BuiltinCode(), code.DeprecatedBuiltinCode()), "CUSTOM")
        reads = [operator.Inputs(each) for each in range(operator.InputsLength())]
        makes = [operator.Outputs(each) for each in range(operator.OutputsLength())]
        given = [_shape(tensors[each]) if each >= 0 else None for each in reads]
        node = GraphNode(
            name=f"{kind}#{number}",
            operator=kind,
            inputs=tuple(called[tensor] for tensor in reads if tensor >= 0),
            outputs=tuple(called[tensor] for tensor in makes),
            macs=node_macs(kind, given, [_shape(tensors[each]) for each in makes]),
        )
        nodes.append(node)
        names[node.name] = tensors[makes[0]].Name().decode() if makes else ""
    sizes = {called[number]: _size(tensor) for number, tensor in enumerate(tensors)}
    known = {name: size for name, size in sizes.items() if size is not None}
    return Graph(nodes=nodes, sizes=known), names


def _shape(tensor: Any) -> tuple[int, ...]:
    return tuple(map(tensor.Shape, range(tensor.ShapeLength())))


def _size(tensor: Any) -> int | None:
    each = _BYTES.get(tensor.Type())
    return None if each is None else each * prod(_shape(tensor))


def _node(node: GraphNode, output: str, refused: dict[str, str]) -> Node:
    reason = refused.get(output, "")
    return Node(
        name=node.name,
        operator=node.operator,
        placement="cpu" if reason else "device",
        reason=reason,
    )

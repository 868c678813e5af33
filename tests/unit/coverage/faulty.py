"""A device with one fault: ONNX Runtime on the CPU, and a model that is changed before it runs.

Its name says which: ``Relu`` is wrong everywhere; ``Sigmoid+Mul`` is wrong where a Mul reads a
Sigmoid, ``Sigmoid*Mul`` only where nobody else sees what is between the two, as where a compiler
fuses them; ``abort:Relu`` dies of one; ``whole:Relu`` is wrong only in the model as it was made.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Any

import msgspec
import onnx
from onnx import helper

from edgert.coverage.adapter import Answer, Facts, Work
from edgert.coverage.adapters.onnxruntime import OnnxRuntimeAdapter
from edgert.coverage.values import Values


class Faulty:
    def __init__(self, device: str, options: dict[str, Any]) -> None:
        self._inner = OnnxRuntimeAdapter("CPU", {})
        self._fault = device

    def facts(self) -> Facts:
        return msgspec.structs.replace(self._inner.facts(), evidence="emulated")

    def ask(self, work: Work) -> tuple[Answer, Values]:
        model = onnx.load(work.path)
        for node in [node for node in model.graph.node if self._is_wrong(node, model)]:
            if self._fault.startswith("abort:"):
                os.abort()
            _spoil(node, model.graph)
        with tempfile.TemporaryDirectory() as folder:
            path = str(Path(folder, "spoilt.onnx"))
            onnx.save(model, path)
            return self._inner.ask(msgspec.structs.replace(work, path=path))

    def _is_wrong(self, node: Any, model: Any) -> bool:
        if self._fault.startswith("whole:") and model.graph.name.startswith("cut of"):
            return False
        name = self._fault.rpartition(":")[2]
        before, joint, last = name.partition("+" if "+" in name else "*")
        if not joint:
            return bool(node.op_type == name)
        makers = {out: each for each in model.graph.node for out in each.output}
        shown = {value.name for value in model.graph.output}
        fed = [each for each in node.input if each in makers and makers[each].op_type == before]
        is_hidden = joint == "+" or not shown.intersection(fed)
        return bool(node.op_type == last and fed and is_hidden)


def _spoil(node: Any, graph: Any) -> None:
    right = node.output[0]
    node.output[0] = f"{right}/before"
    wrong = helper.make_node("Add", [node.output[0], node.output[0]], [right])
    at = list(graph.node).index(node)
    graph.node.insert(at + 1, wrong)

"""ONNX models as they are put to a device: weights are weights, and no nodes."""

from __future__ import annotations

from pathlib import Path

import onnx
from onnx import helper

from edgert.coverage.suites.onnx_graph import make_ready, read_graph
from tests import models


def test_weights_that_a_file_lists_as_inputs_are_none(tmp_path: Path) -> None:
    model = onnx.load(models.convolution(tmp_path / "conv.onnx", (1, 3, 8, 8)))
    needed = [value.name for value in model.graph.input]
    for weight in model.graph.initializer:
        listed = helper.make_tensor_value_info(weight.name, weight.data_type, weight.dims)
        model.graph.input.append(listed)
    onnx.save(model, tmp_path / "old.onnx")
    made = make_ready(str(tmp_path / "old.onnx"), {}, str(tmp_path / "ready.onnx"))
    ready = onnx.load(made["path"])
    assert [value.name for value in ready.graph.input] == needed
    assert len(ready.graph.initializer) == len(model.graph.initializer) > 0


def test_a_constant_is_no_node_to_place(tmp_path: Path) -> None:
    model = onnx.load(models.doubling(tmp_path / "double.onnx"))
    nodes = len(model.graph.node)
    value = helper.make_tensor("v", onnx.TensorProto.FLOAT, [1], [1.0])
    model.graph.node.insert(0, helper.make_node("Constant", [], ["one"], value=value))
    model.graph.node.append(helper.make_node("Add", [model.graph.output[0].name, "one"], ["more"]))
    onnx.save(model, tmp_path / "constant.onnx")
    graph = read_graph(str(tmp_path / "constant.onnx"))
    assert len(graph.nodes) == nodes + 1
    assert "Constant" not in {node.operator for node in graph.nodes}

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from edgert.coverage.suites.forms import put, reference

X = np.linspace(-1, 1, 8, dtype=np.float32).reshape(2, 4)
W = np.linspace(0, 1, 12, dtype=np.float32).reshape(4, 3)


def matmul(opset: int = 13) -> Any:
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["x", "w"], ["y"])],
        "g",
        [
            helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", 4]),
            helper.make_tensor_value_info("w", TensorProto.FLOAT, [4, 3]),
        ],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["N", 3])],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=3)


def test_frozen_keeps_the_first_input_and_the_result() -> None:
    done = put(matmul(), [X, W], [X @ W], "frozen")
    assert list(done.inputs) == ["x"]
    assert [each.name for each in done.model.graph.initializer] == ["w"]
    onnx.checker.check_model(done.model)
    np.testing.assert_allclose(reference(done.model, done.inputs)["y"], X @ W, rtol=1e-6)


def test_static_batch_writes_the_size_of_the_values() -> None:
    done = put(matmul(), [X, W], [X @ W], "static-batch")
    sizes = done.model.graph.input[0].type.tensor_type.shape.dim
    assert [size.dim_value for size in sizes] == [2, 4]
    again = put(done.model, [X, W], [X @ W], "static-batch")
    assert (again.model, again.reason) == (None, "it is static as published")


def test_rank_4_pads_where_the_operator_stays_the_same() -> None:
    done = put(matmul(), [X, W], [X @ W], "rank-4")
    assert done.inputs["x"].shape == (1, 1, 2, 4)
    assert done.outputs["y"].shape == (1, 1, 2, 3)


@pytest.mark.parametrize("opset", [10, 13, 21])
def test_int8_is_near_the_float_result(opset: int) -> None:
    done = put(matmul(opset), [X, W], [X @ W], "int8-qdq")
    assert done.dtype == "i8"
    operators = [node.op_type for node in done.model.graph.node]
    assert operators.count("QuantizeLinear") == 2
    assert operators.count("DequantizeLinear") == 3
    step = np.abs(X @ W).max() / 127
    assert done.atol == pytest.approx(1.01 * step, rel=1e-3)
    np.testing.assert_allclose(done.outputs["y"], X @ W, atol=4 * step)


def test_what_cannot_be_quantised_says_why() -> None:
    assert put(matmul(9), [X, W], [X @ W], "int8-qdq").reason == (
        "operator set 9 has no QuantizeLinear"
    )

"""Rockchip's toolkit: what its log means, and one run of it where it is set up."""

from __future__ import annotations

from pathlib import Path

import pytest

from edgert.coverage import crew, environments
from edgert.coverage.adapter import Work
from edgert.coverage.adapters.registry import spec_of
from edgert.coverage.adapters.rknn_log import fault_of, is_refusal, layers
from edgert.coverage.placement import placement_of
from edgert.coverage.protocol import Ask, Reply
from tests import models

TABLE = """\
D RKNN: [22:07:16.321] ID   OpType         DataType Target InputShape            OutputShape  Cycles(DDR/NPU/Total) RW(KB) FullName
D RKNN: [22:07:16.321] 0    InputOperator  FLOAT16  CPU    \\                     (1,3,16,16)  0/0/0                 0      InputOperator:x
D RKNN: [22:07:16.321] 1    ConvRelu       FLOAT16  NPU    (1,3,16,16),(8,3,3,3) (1,8,16,16)  287/2304/2304         2      Conv:conv
D RKNN: [22:07:16.321] 2    Sin            FLOAT16  CPU    (1,8,16,16)           (1,8,16,16)  0/0/0                 4      Sin:sine
D RKNN: [22:08:06.366] 3    Conv           FLOAT16  NPU    (1,8,16,16),(3,3,1,1) (1,3,16,16)  160958/346112/346112  1014
D RKNN: [22:07:16.321] 4    OutputOperator FLOAT16  CPU    (1,8,16,3)            \\            0/0/0                 0      OutputOperator:v
"""  # noqa: E501  as it is printed
RAISED = """\
Traceback (most recent call last):
  File "rknn/api/rknn_log.py", line 95, in rknn.api.rknn_log.RKNNLog.e
ValueError: The input 0 of NonZero('result') need to be constant! It will cause the graph to be a dynamic graph!
                  Remove NonZero('result') manually and try again!
"""  # noqa: E501  as it is raised
SET_UP = environments.ENVIRONMENTS["rknn"].is_made


def test_the_table_of_layers_is_read() -> None:
    found = layers(TABLE)
    assert [(node.name, node.operator, node.placement) for node in found] == [
        ("conv", "ConvRelu", "device"),
        ("sine", "Sin", "cpu"),
        ("layer 3", "Conv", "device"),
    ]
    assert [node.partition for node in found] == [0, 1, 2]
    assert [(node.cycles, node.moved_kib) for node in found] == [
        (2304, 2),
        (None, 4),
        (346112, 1014),
    ]
    assert found[1].reason == "the compiler gives it to the CPU"


def test_a_log_without_a_table_proves_nothing() -> None:
    assert layers("D RKNN: [22:07:16.305] RKNN is invoked\n") == []
    assert placement_of(layers("")) == "unknown"


def test_what_it_raises_is_told_on_one_line() -> None:
    fault = fault_of(RAISED)
    assert fault == (
        "The input 0 of NonZero('result') need to be constant! It will cause the graph to be a "
        "dynamic graph! Remove NonZero('result') manually and try again!"
    )
    assert is_refusal(fault)
    assert is_refusal("Unsupport onnx opset 22, need <= 19!")
    assert not is_refusal(fault_of("list index out of range"))


@pytest.mark.skipif(not SET_UP, reason="needs 'edgert coverage setup rknn' (5.7 GB)")
def test_the_toolkit_places_and_simulates(tmp_path: Path) -> None:
    model = models.convolution(tmp_path / "conv.onnx", (1, 3, 8, 8))
    replies: list[Reply] = []
    work = Work(name="conv", path=str(model), format="onnx")
    crew.ask_all(
        spec_of("rknn:rk3588", {}, 0), [Ask(work=work)], 1, 120, lambda _, one: replies.append(one)
    )
    answer = replies[0].answer
    assert answer is not None
    assert answer.own_nodes
    assert answer.placement in ("device", "partly")
    assert any(node.cycles for node in answer.nodes)


@pytest.mark.skipif(not SET_UP, reason="needs 'edgert coverage setup rknn' (5.7 GB)")
def test_a_chip_it_does_not_know_is_refused() -> None:
    facts = crew.ask_facts(spec_of("rknn:rk1", {}, 0))
    assert (facts.evidence, facts.reason) == ("unavailable", "the toolkit knows no chip 'rk1'")

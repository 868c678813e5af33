"""Multiply-accumulates of TFLite operators against what one counts by hand."""

from __future__ import annotations

import pytest

from edgert.coverage.adapters.tflite_macs import Shapes, node_macs
from edgert.coverage.suites.tflite import cases
from edgert.coverage.suites.tflite.put import put


@pytest.mark.parametrize(
    ("operator", "inputs", "outputs", "macs"),
    [
        ("CONV_2D", [(1, 8, 9, 4), (6, 3, 3, 4), (6,)], [(1, 8, 9, 6)], 72 * 6 * 36),
        ("CONV_2D", [(2, 8, 8, 4), (6, 1, 1, 2), (6,)], [(2, 4, 4, 6)], 32 * 6 * 2),  # in groups
        ("DEPTHWISE_CONV_2D", [(1, 8, 8, 4), (1, 3, 3, 8)], [(1, 4, 4, 8)], 16 * 9 * 8),
        ("TRANSPOSE_CONV", [(4,), (5, 2, 2, 3), (1, 4, 4, 3)], [(1, 8, 8, 5)], 16 * 5 * 4 * 3),
        ("FULLY_CONNECTED", [(2, 3, 4), (5, 12), None], [(2, 5)], 2 * 5 * 12),
        ("BATCH_MATMUL", [(2, 3, 4), (1, 4, 5)], [(2, 3, 5)], 2 * 3 * 5 * 4),
        ("BATCH_MATMUL", [(2, 4, 3), (2, 4, 5)], [(2, 3, 5)], 2 * 3 * 5 * 4),  # left transposed
        ("CONV_3D", [(1, 4, 5, 6, 2), (2, 3, 3, 2, 4)], [(1, 3, 3, 4, 4)], 36 * 18 * 2 * 4),
        ("SVDF", [(2, 5), (3, 5), (3, 4), (3,)], [(2, 3)], 2 * (15 + 12)),
        ("SOFTMAX", [(1, 10)], [(1, 10)], 0),
        ("CONV_2D", [(1, 8, 9, 4), (6, 3, 3, 4)], [None], None),  # a shape that is open
        ("FULLY_CONNECTED", [(1, 4)], [(1, 4)], None),  # damaged
        ("LSTM", [(1, 4)], [(1, 4)], None),
        ("WHILE", [(1, 4)], [(1, 4)], None),
    ],
)
def test_every_weight_is_counted_where_it_is_met(
    operator: str, inputs: Shapes, outputs: Shapes, macs: int | None
) -> None:
    assert node_macs(operator, inputs, outputs) == macs


def test_no_operator_of_the_suite_is_beyond_counting() -> None:
    for variant, kind in cases.every():
        found = put(variant, kind)
        given = [None if each is None else each.array.shape for each in found.inputs]
        made = [each.array.shape for each in found.outputs]
        assert node_macs(variant.operator, given, made) is not None, variant.case(kind)

"""Puts the conversion from bytes before the inputs of a model that OpenVINO has read."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from edgert.backends.base import ByteInput
from edgert.backends.byte_input import factor_and_offset
from edgert.backends.openvino_runtime import ov
from edgert.transport.address import Array


def take_bytes(model: Any, conversions: Mapping[int, ByteInput]) -> Any:
    """Return the model with inputs of u8, by their index; order and names stay as they are."""
    rebuilt = ov.preprocess.PrePostProcessor(model)
    for index, conversion in conversions.items():
        rebuilt.input(index).tensor().set_element_type(ov.Type.u8)
        steps = rebuilt.input(index).preprocess().convert_element_type(ov.Type.f32)
        values = factor_and_offset(conversion)
        if values is not None:
            steps.custom(partial(_scaled, *values))
    # What follows f32 in the model, f16 for example, is added by OpenVINO.
    return rebuilt.build()


def _scaled(factor: Array, offset: Array, node: Any) -> Any:
    product = ov.opset13.multiply(node, ov.opset13.constant(factor))
    return ov.opset13.add(product, ov.opset13.constant(offset)).output(0)

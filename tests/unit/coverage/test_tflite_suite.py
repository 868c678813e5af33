"""TFLite cases that edgert makes: what is written, and whether it is what TFLite means by it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from ai_edge_litert import schema_py_generated as schema
from ai_edge_litert.interpreter import Interpreter, OpResolverType
from hypothesis import given
from hypothesis import strategies as st

from edgert.coverage.compare import compare
from edgert.coverage.suites.kept import read_index
from edgert.coverage.suites.tflite import cases
from edgert.coverage.suites.tflite.file import options
from edgert.coverage.suites.tflite.put import Scales, put
from edgert.coverage.suites.tflite.variant import Kind, Variant
from edgert.coverage.suites.tflite.windows import same_padding, windows

EVERY = list(cases.every())
# One of each room: filters, images, elementwise, activations, reductions, layout, cuts, choosing,
# types, recurrent.
SOME = {
    *("CONV_2D", "TRANSPOSE_CONV", "AVERAGE_POOL_2D", "RESIZE_BILINEAR", "SUB", "HARD_SWISH"),
    *("MEAN", "TRANSPOSE", "STRIDED_SLICE", "GATHER", "QUANTIZE", "UNIDIRECTIONAL_SEQUENCE_LSTM"),
}


def test_the_suite_is_wide_and_its_names_are_its_own() -> None:
    names = [variant.case(kind) for variant, kind in EVERY]
    assert len(set(names)) == len(names)
    operators = {variant.operator for variant, _ in EVERY}
    assert len(operators) > 100
    assert all(hasattr(schema.BuiltinOperator, operator) for operator in operators)
    both = {variant.operator for variant, kind in EVERY if kind == "i8"}
    assert len(both & {variant.operator for variant, kind in EVERY if kind == "f32"}) >= 60


@pytest.mark.parametrize("operator", sorted(SOME))
def test_formulas_say_what_the_reference_kernels_compute(operator: str, tmp_path: Path) -> None:
    path = tmp_path / "case.tflite"
    for variant, kind in EVERY:
        if variant.operator == operator:
            expected, actual = by_reference_kernels(variant, kind, path)
            found = compare(expected, actual, steps=variant.allowed(kind))
            assert found.numerics == "equal", (variant.case(kind), found)


def by_reference_kernels(variant: Variant, kind: Kind, path: Path) -> tuple[Any, Any]:
    found = put(variant, kind)
    cases.write_model(variant, kind, found, path)
    reference = OpResolverType.BUILTIN_REF
    interpreter = Interpreter(str(path), experimental_op_resolver_type=reference)
    interpreter.allocate_tensors()
    inputs = cases.inputs_of(found)
    for detail in interpreter.get_input_details():
        interpreter.set_tensor(detail["index"], inputs[detail["name"]])
    interpreter.invoke()
    details = interpreter.get_output_details()
    actual = {each["name"]: interpreter.get_tensor(each["index"]) for each in details}
    return {f"y{number}": each.array for number, each in enumerate(found.outputs)}, actual


def test_a_quantised_case_is_judged_by_its_arithmetic_alone() -> None:
    variant = next(v for v, _ in EVERY if (v.operator, v.name) == ("CONV_2D", "same"))
    found = put(variant, "i8")
    image, weights, bias = found.inputs
    assert [each.dtype for each in (image, weights, bias)] == ["i8", "i8", "i32"]
    assert len(weights.scales.scale) == 6
    np.testing.assert_allclose(
        bias.scales.scale, np.multiply(image.scales.scale, weights.scales.scale)
    )
    (output,) = found.outputs
    exact = variant.formula(image.real, weights.real, bias.real)
    assert np.abs(output.real - exact).max() <= output.scales.scale[0] / 2 + 1e-9


def test_a_field_that_the_schema_has_not_is_our_fault() -> None:
    with pytest.raises(AttributeError, match="Conv2DOptions has no field stride"):
        options("Conv2DOptions", {"stride": 2})
    made = options("Conv2DOptions", {"padding": "VALID", "fusedActivationFunction": "RELU6"})
    assert (made.padding, made.fusedActivationFunction) == (1, 3)


def test_a_suite_is_written_once_and_whole(tmp_path: Path, monkeypatch: Any) -> None:
    few = [each for each in EVERY if each[0].operator == "RELU"]
    monkeypatch.setattr(cases, "every", lambda: iter(few))
    made = cases.prepare(str(tmp_path))
    items = read_index(made["index"])
    assert [item.work.name for item in items] == [v.case(kind) for v, kind in few]
    assert {(item.dtype, item.opset) for item in items} == {
        *(("f32", 1), ("i8", 2), ("u8", 1), ("i16", 3))
    }
    assert all(Path(item.work.path).exists() and Path(item.expected).exists() for item in items)
    monkeypatch.setattr(cases, "every", lambda: pytest.fail("it is there already"))
    assert cases.prepare(str(tmp_path)) == made
    assert [path.name for path in tmp_path.iterdir()] == [f"tflite-{cases.REVISION}"]


@given(st.floats(-100, 100), st.floats(1e-3, 10), st.integers(-128, 127))
def test_the_nearest_level_is_at_most_half_a_step_away(
    real: float, scale: float, zero: int
) -> None:
    scales = Scales([scale], [zero])
    found = scales.rounded(np.array([real]), "i8")
    low, high = scales.real(np.array([-128], np.int8)), scales.real(np.array([127], np.int8))
    nearest = np.clip(real, low, high)
    assert abs(scales.real(found) - nearest) <= scale / 2 * (1 + 1e-9)


@given(st.integers(1, 20), st.integers(1, 7), st.integers(1, 4))
def test_same_padding_gives_a_window_for_every_stride(size: int, kernel: int, stride: int) -> None:
    before, after = same_padding(size, kernel, stride)
    assert 0 <= after - before <= 1
    image = np.zeros((1, size, size, 1))
    found = windows(image, (kernel, kernel), (stride, stride), "SAME")
    assert found.shape[1:3] == (-(-size // stride),) * 2

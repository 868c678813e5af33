from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from edgert.coverage.compare import compare, tolerance_of


def test_equal_within_the_tolerance_of_the_type() -> None:
    found = compare({"y": np.float32([1, 2])}, {"y": np.float32([1.0005, 2])})
    assert found.numerics == "equal"
    assert found.max_error == pytest.approx(0.0005, rel=1e-3)
    assert found.mean_error == pytest.approx(0.00025, rel=1e-3)


def test_a_suite_may_allow_more_never_less() -> None:
    expected, actual = {"y": np.float32([1])}, {"y": np.float32([1.01])}
    assert compare(expected, actual).numerics == "differs"
    assert compare(expected, actual, rtol=0.1).numerics == "equal"
    assert compare(expected, {"y": np.float32([1.0005])}, rtol=1e-9).numerics == "equal"


def test_integers_are_exact_however_large() -> None:
    big = 2**62
    found = compare({"y": np.array([big])}, {"y": np.array([big + 1])}, atol=5)
    assert (found.numerics, found.max_error) == ("differs", 1.0)
    assert found.reason == "1 of 1 values of 'y' differ"


def test_nan_and_infinity_are_values_like_others() -> None:
    strange = np.float32([np.nan, np.inf, -np.inf])
    assert compare({"y": strange}, {"y": strange}).numerics == "equal"
    found = compare({"y": strange}, {"y": np.float32([np.nan, np.inf, np.inf])})
    assert (found.numerics, found.max_error) == ("differs", 0.0)


@pytest.mark.parametrize(
    ("actual", "reason"),
    [
        ({}, "output 'y' is missing"),
        ({"y": np.zeros((2, 1), "f4")}, "output 'y' is [2, 1], not [2]"),
        ({"y": np.zeros(2, "f8")}, "output 'y' is float64, not float32"),
        ({"y": [np.zeros(2, "f4")] * 2}, "output 'y' has 2 of 1 parts"),
        ({"y": None}, "output 'y' is empty"),
    ],
)
def test_other_shapes_types_and_kinds_differ(actual: dict[str, object], reason: str) -> None:
    found = compare({"y": np.zeros(2, "f4")}, actual)
    assert (found.numerics, found.reason, found.max_error) == ("differs", reason, None)


def test_sequences_are_compared_part_by_part() -> None:
    parts = [np.zeros(1, "f4"), np.ones(2, "f4")]
    assert compare({"y": parts}, {"y": parts}).numerics == "equal"
    found = compare({"y": parts}, {"y": [parts[0], parts[1] * 3]})
    assert (found.numerics, found.max_error) == ("differs", 2.0)


def test_one_step_of_a_small_float_is_rounding() -> None:
    expected = np.array([1.0], ml_dtypes.float8_e4m3fn)
    assert compare({"y": expected}, {"y": np.array([1.125], expected.dtype)}).numerics == "equal"
    assert compare({"y": expected}, {"y": np.array([1.25], expected.dtype)}).numerics == "differs"


def test_nothing_to_compare_is_equal_and_says_no_error() -> None:
    assert compare({}, {"y": np.zeros(1)}).max_error is None
    assert compare({"y": np.zeros((0, 3))}, {"y": np.zeros((0, 3))}).numerics == "equal"


def test_a_device_of_half_precision_is_held_to_what_that_can_do() -> None:
    rtol, atol = tolerance_of("f16")
    expected, actual = {"y": np.float32([1.0])}, {"y": np.float32([1.005])}
    assert compare(expected, actual).numerics == "differs"
    assert compare(expected, actual, rtol, atol).numerics == "equal"
    assert tolerance_of("") == tolerance_of("f32") == (0.0, 0.0)


def test_levels_may_be_off_by_the_steps_that_rounding_explains() -> None:
    expected, actual = {"y": np.int8([3, -128])}, {"y": np.int8([4, -127])}
    found = compare(expected, actual)
    assert (found.numerics, found.max_error) == ("differs", 1.0)
    assert compare(expected, actual, steps=1).numerics == "equal"
    assert compare(expected, {"y": np.int8([5, -128])}, steps=1).numerics == "differs"
    assert compare({"y": np.array([True])}, {"y": np.array([False])}, steps=1).reason

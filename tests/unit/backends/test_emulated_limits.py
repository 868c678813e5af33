"""What an emulated device takes, how exact it is, and what it computes."""

from __future__ import annotations

from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgert.backends.base import ByteInput, Session
from edgert.backends.emulated_precision import round_all
from edgert.backends.registry import is_installed
from edgert.errors import DeviceError, ModelError
from tests import models

counted = pytest.mark.skipif(
    not is_installed("openvino"), reason="operators are counted by OpenVINO"
)
# Of ``models.convolution``, as OpenVINO reads it.
FLATTENING = ["ShapeOf", "Gather", "Concat", "Reshape"]


@pytest.fixture
def convolution(tmp_path: Path) -> Path:
    return models.convolution(tmp_path / "m.onnx", [1, 3, 8, 8])


def opened(model: Path, requests: int = 1, **options: Any) -> AbstractContextManager[Session]:
    return models.session_of("emulated", model, options=options, requests=requests)


def refused(model: Path, **options: Any) -> str:
    with pytest.raises(DeviceError) as caught, opened(model, **options):
        pass
    return str(caught.value)


@counted
def test_a_model_with_other_operators_is_refused_and_they_are_named(convolution: Path) -> None:
    assert refused(convolution, operators=FLATTENING) == (
        "emulated:NPU: it takes 4 of 5 operators; it lacks Convolution (1). "
        "'unsupported: cpu' has the CPU do the rest."
    )


@counted
def test_what_the_cpu_does_is_reported(convolution: Path) -> None:
    with opened(convolution, operators=["Convolution"], unsupported="cpu") as session:
        assert session.device.placed == "1 of 5 operators"
        assert session.device.actual == "emulated:NPU,CPU"
    with opened(convolution, operators=["Convolution", *FLATTENING]) as session:
        assert session.device.placed == "5 of 5 operators"
        assert session.device.actual == "emulated:NPU"


@counted
def test_the_cpu_does_nothing_where_the_device_must_take_all(convolution: Path) -> None:
    asked = {"options": {"operators": ["Convolution"], "unsupported": "cpu"}, "whole": True}
    with (
        pytest.raises(DeviceError, match="it took only 1 of 5 operators of the model"),
        models.session_of("emulated", convolution, **asked),
    ):
        pass


@counted
def test_what_openvino_does_not_read_has_no_count(tmp_path: Path) -> None:
    pytest.importorskip("ai_edge_litert")
    said = refused(models.of("tflite").blending(tmp_path / "m.tflite"), operators=["Add"])
    assert said == (
        "emulated:NPU, options: operators and memory of a model are counted by OpenVINO, which "
        "does not read this one: OpenVINO does not support all of its operators; it lacks IF. "
        "Leave out 'operators' and 'memory_mb'."
    )


@counted
def test_a_model_none_of_whose_operators_it_has_is_refused(convolution: Path) -> None:
    said = refused(convolution, operators=["Relu"], unsupported="cpu")
    assert said.startswith("emulated:NPU: it took none of the model's 5 operators.")


@counted
@pytest.mark.parametrize(("precision", "size"), [("f32", 4), ("f16", 2), ("i8", 1)])
def test_a_model_that_does_not_fit_into_its_memory(
    precision: str, size: int, tmp_path: Path
) -> None:
    # 20 weights; 2x4 values are read and 2x5 written.
    model = models.matrix(tmp_path / "m.onnx")
    with opened(model, precision=precision, memory_mb=size * 38 / 1e6):
        pass
    assert refused(model, precision=precision, memory_mb=size * 38 / 1e6 - 1e-7) == (
        f"emulated:NPU: the model needs {size * 38 / 1e6:.4g} MB at {precision} "
        f"(weights {size * 20 / 1e6:.4g}, activations {size * 18 / 1e6:.4g}), "
        f"and the device has {size * 38 / 1e6 - 1e-7:.4g} MB."
    )


def test_open_sizes_are_refused_with_the_line_to_add(tmp_path: Path) -> None:
    model = models.convolution(tmp_path / "m.onnx", ["n", 3, "h", 8])
    with (
        pytest.raises(ModelError, match=r"Fix it: 'shape: \{x: \[N, 3, N, 8\]\}'"),
        opened(model, dynamic_shapes=False),
    ):
        pass


def test_results_of_open_size_are_refused_where_it_has_no_dynamic_shapes(tmp_path: Path) -> None:
    model = models.places_of_ones(tmp_path / "m.onnx")
    said = "the size of its output 'y' is not known before: i64[1,?]"
    assert refused(model, dynamic_shapes=False) == (
        f"emulated:NPU, options, dynamic_shapes: {said}."
    )
    assert refused(model, outputs="computed") == (
        f"emulated:NPU, options, outputs: not computed here: {said}. Write 'outputs: replayed'."
    )


@pytest.mark.parametrize("requests", [1, 3])
def test_results_are_computed_where_they_are_asked_for(requests: int, tmp_path: Path) -> None:
    model = models.two_in_two_out(tmp_path / "m.onnx")
    with opened(model, requests, outputs="computed") as session:
        assert session.requests == requests
        assert session.device.precision == "f32"
        assert session.device.emulated
        outputs = models.arrays_for(session.outputs)
        for number in range(5):
            given = {"a": np.full(4, number, np.float32), "b": np.full(4, 8, np.float32)}
            models.infer(session, given, outputs)
            assert outputs["total"].tolist() == [number + 8] * 4
        with pytest.raises(DeviceError, match="tensor 'a'"):
            session.start({"b": given["b"]}, outputs, pytest.fail)


def test_computed_results_are_spoilt_anew(tmp_path: Path) -> None:
    model = models.doubling(tmp_path / "m.onnx")
    options = {"outputs": "computed", "precision": "f16", "faults": {"nan_after": 1}}
    with opened(model, **options) as session:
        assert session.device.precision == "f16"
        output = np.zeros((2, 3), np.float32)
        models.infer(session, {"x": np.full((2, 3), 1.0001, np.float32)}, {"y": output})
        assert (output == np.float16(2.0002)).all()
        models.infer(session, {"x": np.ones((2, 3), np.float32)}, {"y": output})
        assert np.isnan(output).all()


def test_bytes_are_computed_with_too(tmp_path: Path) -> None:
    model = models.doubling(tmp_path / "m.onnx", (1, 1, 2, 3))
    asked = {"options": {"outputs": "computed"}, "bytes": {"x": ByteInput("NCHW", scale=0.5)}}
    with models.session_of("emulated", model, **asked) as session:
        outputs = models.arrays_for(session.outputs)
        models.infer(session, {"x": np.full((1, 1, 2, 3), 20, np.uint8)}, outputs)
        assert (outputs["y"] == 20).all()


def test_a_file_to_replay_is_not_for_computed_results(convolution: Path) -> None:
    assert "'input' is for 'outputs: replayed': remove one of them" in refused(
        convolution, outputs="computed", input="x.npy"
    )


@pytest.mark.parametrize("precision", ["f16", "bf16", "i8"])
def test_replayed_results_are_rounded(precision: str, convolution: Path) -> None:
    found = {}
    for name in (None, precision):
        with opened(convolution, **({"precision": name} if name else {})) as session:
            outputs = models.arrays_for(session.outputs)
            models.infer(session, {"x": np.zeros((1, 3, 8, 8), np.float32)}, outputs)
            found[name] = outputs["y"]
            said = session.device.precision
    assert said == f"{precision}, replayed"
    wanted = found[None].copy()
    round_all([wanted], precision)
    assert (found[precision] == wanted).all()
    assert (found[precision] != found[None]).any()


def rounded(precision: str, *values: float) -> list[float]:
    array = np.array(values, np.float32)
    round_all([array], precision)
    return array.tolist()


def test_how_each_precision_rounds() -> None:
    inf, nan = float("inf"), float("nan")
    assert rounded("f32", 1.1) == [float(np.float32(1.1))]
    assert rounded("f16", 1.0004, 1.0006, 70000.0) == [1.0, 1.0009765625, inf]
    assert rounded("bf16", 1.00390625, 1.01171875, 3.4e38, inf) == [1.0, 1.015625, inf, inf]
    assert np.isnan(rounded("bf16", nan)).all()
    assert rounded("i8", 127.0, 0.4, 0.6, -126.6) == [127, 0, 1, -127]
    assert rounded("i8", 0.0, 0.0) == [0, 0]


@given(st.lists(st.floats(-(2.0**100), 2.0**100, width=32, allow_subnormal=False), min_size=1))
def test_bf16_is_never_off_by_more_than_half_a_step(values: list[float]) -> None:
    before = np.array(values, np.float32)
    after = np.array(rounded("bf16", *values), np.float32)
    normal = np.abs(before) > 1e-30
    assert (np.abs(after - before)[normal] <= np.abs(before)[normal] * 2**-8).all()


def test_whole_numbers_are_not_rounded() -> None:
    array = np.array([1, 1000], np.int32)
    round_all([array], "i8")
    assert array.tolist() == [1, 1000]

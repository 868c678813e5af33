from contextlib import AbstractContextManager
from pathlib import Path

import numpy as np
import pytest

from edgert.backends.base import Session
from edgert.errors import DeviceError, ModelError
from tests import models


@pytest.fixture
def doubling(tmp_path: Path) -> Path:
    return models.doubling(tmp_path / "doubling.onnx")


def opened(model: Path, requests: int = 1, **options: object) -> AbstractContextManager[Session]:
    return models.session_of("emulated", model, requests=requests, options=options)


def zeros() -> np.ndarray:
    return np.zeros((2, 3), np.float32)


def test_it_replays_one_real_inference_whatever_comes_in(doubling: Path) -> None:
    with models.session_of("emulated", doubling) as session:
        first, second = zeros(), zeros()
        models.infer(session, {"x": zeros()}, {"y": first})
        models.infer(session, {"x": zeros() + 9}, {"y": second})
    assert first.sum() > 0
    assert (first == second).all()
    assert (first % 2 == 0).all()


def test_two_loads_replay_the_same(doubling: Path) -> None:
    found = []
    for _ in range(2):
        with models.session_of("emulated", doubling) as session:
            found.append(zeros())
            models.infer(session, {"x": zeros()}, {"y": found[-1]})
    assert (found[0] == found[1]).all()


def test_the_replayed_inference_can_be_made_from_a_file(doubling: Path, tmp_path: Path) -> None:
    file = tmp_path / "x.npy"
    np.save(file, zeros() + 7)
    with models.session_of("emulated", doubling, options={"input": str(file)}) as session:
        output = zeros()
        models.infer(session, {"x": zeros()}, {"y": output})
    assert (output == 14).all()


@pytest.mark.parametrize("outputs", ["replayed", "computed"])
def test_a_model_that_openvino_refuses_is_left_to_who_reads_it(
    outputs: str, tmp_path: Path
) -> None:
    """A branch (IF) of a TFLite file; y is a - b here, since the sum of b is more than 0."""
    pytest.importorskip("ai_edge_litert")
    model = models.of("tflite").blending(tmp_path / "m.tflite")
    with opened(model, outputs=outputs) as session:
        assert session.device.actual == "emulated:NPU"
        assert session.device.runtime.startswith("emulated 1, results of tflite ")
        given = {name: np.full((1, 1, 2, 2), n, np.float32) for n, name in enumerate("ab", 1)}
        results = models.arrays_for(session.outputs)
        models.infer(session, given, results)
    # The replayed inference is of the same noise twice.
    expected = -1 if outputs == "computed" else 0
    assert (results["y"] == expected).all()


def test_a_model_that_nobody_reads_is_refused_with_the_first_reason(tmp_path: Path) -> None:
    pytest.importorskip("ai_edge_litert")
    model = models.of("tflite").foreign(tmp_path / "m.tflite")
    with (
        pytest.raises((ModelError, DeviceError), match="OpenVINO does not support all of its"),
        opened(model),
    ):
        pass


def test_it_is_said_whose_results_are_replayed(doubling: Path) -> None:
    pytest.importorskip("openvino")
    with opened(doubling) as session:
        assert session.device.runtime.startswith("emulated 1, results of openvino ")


def test_an_array_is_written_once_for_as_long_as_it_lives(doubling: Path) -> None:
    with models.session_of("emulated", doubling) as session:
        output = zeros()
        models.infer(session, {"x": zeros()}, {"y": output})
        output[:] = -1
        models.infer(session, {"x": zeros()}, {"y": output})
        assert (output == -1).all()
        # Another array over the same memory is another slot's, for all the session knows.
        models.infer(session, {"x": zeros()}, {"y": output[:]})
        assert (output > 0).all()


def test_open_outputs_get_the_size_of_the_replayed_result(tmp_path: Path) -> None:
    model = models.places_of_ones(tmp_path / "m.onnx")
    file = tmp_path / "x.npy"
    np.save(file, np.array([0, 1, 0, 0, 0, 1], np.float32))
    with models.session_of("emulated", model, options={"input": str(file)}) as session:
        assert session.outputs["y"].shape == (1, 2)
        outputs = models.arrays_for(session.outputs)
        models.infer(session, {"x": np.zeros(6, np.float32)}, outputs)
        assert outputs["y"].tolist() == [[1, 5]]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"latency_ms": 0}, "latency_ms: it must be more than 0"),
        ({"latency_ms": float("nan")}, "it must be more than 0"),
        ({"latency_ms": "fast"}, "it is a number, {p50: 5, p99: 20} or {min: 4, max: 8}"),
        ({"latency_ms": True}, "it is a number"),
        ({"latency_ms": {"p50": 5}}, "latency_ms: it is a number, {p50: 5, p99: 20}"),
        ({"latency_ms": {"p50": 5, "max": 9}}, "latency_ms: it is a number, {p50: 5, p99: 20}"),
        ({"latency_ms": {"p50": 5, "p99": 4}}, "latency_ms: p50 is more than p99"),
        ({"latency_ms": {"min": 5, "maxx": 9}}, "latency_ms, options: there is no option 'maxx'"),
        ({"latencyms": 1}, "Did you mean 'latency_ms'"),
        ({"lanes": 0}, "lanes: it should be greater than or equal to 1"),
        ({"lanes": 1.5}, "lanes: it should be a valid integer"),
        ({"faults": {"die_afer": 1}}, "faults, options: there is no option 'die_afer'. Did you"),
        ({"faults": {"slow_after": {"factor": 2}}}, "faults, slow_after, inferences: field requ"),
        ({"faults": {"slow_after": {"facto": 2}}}, "slow_after, options: there is no option 'fac"),
        ({"faults": {"gone_after": 5}}, "'faults: gone_after' is remembered in a folder: add 'st"),
        ({"faults": {"die_after": 5, "once": True}}, "'faults: once' is remembered in a folder"),
        ({"input": "/no/such.npy"}, "/no/such.npy cannot be read"),
        ({"state": "/dev/null/x"}, "state: /dev/null/x cannot be used: Not a dir"),
    ],
)
def test_bad_options_are_refused(options: dict[str, object], message: str, doubling: Path) -> None:
    with pytest.raises(DeviceError) as caught, opened(doubling, **options):
        pass
    assert message in str(caught.value)


def test_every_fault_is_told_at_once(doubling: Path) -> None:
    options = {"latency_ms": 0, "lane": 2, "faults": {"refuse": 1, "noise": -1}}
    with pytest.raises(DeviceError) as caught, opened(doubling, **options):
        pass
    assert str(caught.value).splitlines() == [
        "emulated:NPU, options, latency_ms: it must be more than 0 and at most 600000.",
        "emulated:NPU, options, faults, refuse: it should be a valid string.",
        "emulated:NPU, options, faults, noise: it should be greater than or equal to 0.",
        "emulated:NPU, options: there is no option 'lane'. Did you mean 'lanes'?",
    ]


@pytest.mark.parametrize("device", ["NPU", "NPU.1", "GPU", "GPU.12"])
def test_there_may_be_several_of_a_kind(device: str, doubling: Path) -> None:
    with models.session_of("emulated", doubling, device=device) as session:
        assert session.device.actual == f"emulated:{device}"
        assert session.device.emulated


@pytest.mark.parametrize("device", ["NPU1", "NPU.", "NPU.x", "npu", "CPU"])
def test_other_names_are_no_devices(device: str, doubling: Path) -> None:
    with (
        pytest.raises(DeviceError, match=r"There are: NPU, GPU, and NPU\.1, NPU\.2 and so on"),
        models.session_of("emulated", doubling, device=device),
    ):
        pass


def test_a_file_of_another_shape_is_refused(doubling: Path, tmp_path: Path) -> None:
    file = tmp_path / "x.npy"
    np.save(file, np.zeros(5, np.float32))
    with (
        pytest.raises(DeviceError, match=r"tensor 'x'.*float32\[5\]"),
        models.session_of("emulated", doubling, options={"input": str(file)}),
    ):
        pass

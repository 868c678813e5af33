from pathlib import Path

import numpy as np
import pytest

from edgert.errors import DeviceError
from tests import models


@pytest.fixture
def doubling(tmp_path: Path) -> Path:
    return models.doubling(tmp_path / "doubling.onnx")


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


def test_it_does_not_end_before_its_latency(doubling: Path) -> None:
    import time

    with models.session_of("emulated", doubling, options={"latency_ms": 20}, requests=3) as session:
        ended_s: list[float] = []
        outputs = [zeros() for _ in range(3)]
        began_s = time.monotonic()
        for output in outputs:
            session.start({"x": zeros()}, {"y": output}, lambda _: ended_s.append(time.monotonic()))
    for n, end_s in enumerate(ended_s, 1):
        assert end_s - began_s >= n * 0.020


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
        ({"latency_ms": 0}, "it must be more than 0"),
        ({"latency_ms": float("nan")}, "it must be more than 0"),
        ({"latency_ms": "fast"}, "Expected `float`, got `str`"),
        ({"latencyms": 1}, "Did you mean 'latency_ms'"),
        ({"input": "/no/such.npy"}, "/no/such.npy cannot be read"),
    ],
)
def test_bad_options_are_refused(options: dict[str, object], message: str, doubling: Path) -> None:
    with (
        pytest.raises(DeviceError, match=message),
        models.session_of("emulated", doubling, options=options),
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

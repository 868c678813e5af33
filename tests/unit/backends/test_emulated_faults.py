"""Faults that an emulated device was asked for; those that kill are in tests/process."""

from __future__ import annotations

from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from edgert import isolate
from edgert.backends.base import CompileRequest, Session
from edgert.backends.registry import backend, options_for
from edgert.errors import DeviceError, RunError
from tests import models


@pytest.fixture
def doubling(tmp_path: Path) -> Path:
    return models.doubling(tmp_path / "doubling.onnx")


def opened(
    model: Path, state: Path | None = None, **faults: Any
) -> AbstractContextManager[Session]:
    options = {"latency_ms": 0.1, "faults": faults, "state": str(state or "")}
    return models.session_of("emulated", model, options=options)


def results(session: Session, count: int) -> list[Any]:
    """Return the output, or the error, of each of some inferences into the same memory."""
    found: list[Any] = []
    output = np.zeros((2, 3), np.float32)
    for _ in range(count):
        try:
            models.infer(session, {"x": np.zeros((2, 3), np.float32)}, {"y": output})
            found.append(output.copy())
        except RunError as error:
            found.append(str(error))
    return found


def failed(session: Session, count: int) -> list[bool]:
    return [isinstance(each, str) for each in results(session, count)]


def test_it_refuses_with_the_reason_that_was_asked_for(doubling: Path) -> None:
    with (
        pytest.raises(DeviceError, match="emulated:NPU: it refuses the model: too hot"),
        opened(doubling, refuse="too hot"),
    ):
        pass


def test_it_fails_from_an_inference_on(doubling: Path) -> None:
    with opened(doubling, error_after=3) as session:
        found = results(session, 5)
    assert (
        found[3]
        == found[4]
        == ("emulated:NPU: an inference failed: it was asked for (error_after: 3).")
    )
    assert not any(isinstance(each, str) for each in found[:3])


def test_it_fails_now_and_then(doubling: Path) -> None:
    with opened(doubling, errors_every=3) as session:
        assert failed(session, 7) == [False, False, True, False, False, True, False]


def test_its_outputs_become_absurd(doubling: Path) -> None:
    with opened(doubling, nan_after=2) as session:
        found = results(session, 4)
    assert [bool(np.isnan(each).all()) for each in found] == [False, False, True, True]
    assert np.isfinite(found[:2]).all()


def test_noise_is_added_anew_each_time_and_is_the_same_in_each_session(doubling: Path) -> None:
    runs = []
    for _ in range(2):
        with opened(doubling, noise=0.5) as session:
            runs.append(np.stack(results(session, 200)))
    with opened(doubling) as session:
        clean = results(session, 1)[0]
    assert (runs[0] == runs[1]).all()
    assert (runs[0][0] != runs[0][1]).any()
    assert (runs[0] - clean).std() == pytest.approx(0.5, rel=0.1)


@pytest.mark.parametrize("fault", [{"noise": 1.0}, {"nan_after": 1}])
def test_whole_numbers_cannot_become_absurd(fault: dict[str, Any], tmp_path: Path) -> None:
    model = models.doubling(tmp_path / "m.onnx", (2, 3), "i32")
    with (
        pytest.raises(DeviceError, match="faults: the model has no outputs of floats"),
        opened(model, **fault),
    ):
        pass


def test_a_device_that_is_gone_stays_away_until_it_is_put_back(
    doubling: Path, tmp_path: Path
) -> None:
    state = tmp_path / "state"
    with opened(doubling, state, gone_after=1) as session:
        assert results(session, 2)[1] == "emulated:NPU: an inference failed: the device is gone."
    with pytest.raises(DeviceError, match=r"it is gone. Remove (.*) to bring it back"):
        opened(doubling, state, gone_after=1).__enter__()
    (state / "emulated-NPU.gone").unlink()
    with opened(doubling, state, gone_after=1) as session:
        assert failed(session, 1) == [False]


def test_a_device_that_is_gone_is_gone_for_all_who_have_it_open(
    doubling: Path, tmp_path: Path
) -> None:
    state = tmp_path / "state"
    with (
        opened(doubling, state, gone_after=1) as session,
        opened(doubling, state, gone_after=9) as other,
    ):
        assert failed(other, 2) == [False, False]
        assert failed(session, 2) == [False, True]
        assert failed(other, 1) == [True]
        (state / "emulated-NPU.gone").unlink()
        assert failed(other, 1) == failed(session, 1) == [True]
    assert not (state / "emulated-NPU.gone").exists()


def test_a_fault_that_comes_once_stays_with_the_session_that_had_it(
    doubling: Path, tmp_path: Path
) -> None:
    state = tmp_path / "state"
    with (
        opened(doubling, state, once=True, error_after=1) as session,
        opened(doubling, state, once=True, error_after=2) as other,
    ):
        assert failed(session, 3) == [False, True, True]
        assert failed(other, 4) == [False] * 4
    with opened(doubling, state, once=True, refuse="no") as session:
        assert failed(session, 3) == [False] * 3


def compile_it(model: str, options: dict[str, Any]) -> None:
    backend("emulated").compile(CompileRequest(model, "NPU", options=options)).close()


@pytest.mark.parametrize(
    ("fault", "said"), [("hang_open", "did not finish within"), ("die_open", "SIGSEGV")]
)
def test_it_hangs_or_dies_when_it_is_opened(fault: str, said: str, doubling: Path) -> None:
    options = {"faults": {fault: True}}
    arguments = {"model": str(doubling), "options": options}
    timeout_s = 3.0 if fault == "hang_open" else 60.0
    with pytest.raises(DeviceError, match=said):
        isolate.call(f"{__name__}:compile_it", arguments, timeout_s, "emulated", DeviceError)


def test_a_folder_that_went_away_is_told(doubling: Path, tmp_path: Path) -> None:
    state = tmp_path / "state"
    with opened(doubling, state, once=True, error_after=0) as session:
        for file in state.iterdir():
            file.unlink()
        state.rmdir()
        assert "an inference failed: [Errno 2]" in results(session, 1)[0]


def test_options_of_a_device_go_to_it_alone() -> None:
    options = {"a": 1, "emulated": {"a": 2, "b": 2}, "emulated:NPU.1": {"b": 3}, "openvino": {}}
    assert options_for(options, "emulated", "NPU") == {"a": 2, "b": 2}
    assert options_for(options, "emulated", "NPU.1") == {"a": 2, "b": 3}
    assert options_for(options, "openvino", "CPU") == {"a": 1}

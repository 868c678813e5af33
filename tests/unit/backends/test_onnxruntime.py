import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest

from edgert.backends.registry import backend
from edgert.errors import DeviceError
from edgert.tensor import TensorSpec
from tests import models

pytest.importorskip("onnxruntime")


@pytest.fixture
def doubling(tmp_path: Path) -> Path:
    return models.doubling(tmp_path / "doubling.onnx")


def test_a_service_in_the_cloud_is_no_device() -> None:
    assert "CPU" in backend("onnxruntime").devices()
    assert "Azure" not in backend("onnxruntime").devices()


@pytest.mark.parametrize("device", ["CPU", "cpu", "CPUExecutionProvider"])
def test_a_provider_may_be_named_in_any_of_its_ways(device: str, doubling: Path) -> None:
    with models.session_of("onnxruntime", doubling, device=device) as session:
        assert session.device.actual == "onnxruntime:CPU"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"optimisation": "most"}, "there is no 'most'. One of: all, extended, basic, off"),
        ({"spinning": "yes"}, "Expected `bool`, got `str`"),
        ({"optimization": "all"}, "Did you mean 'optimisation'"),
    ],
)
def test_bad_options_are_refused(options: dict[str, object], message: str, doubling: Path) -> None:
    with (
        pytest.raises(DeviceError, match=message),
        models.session_of("onnxruntime", doubling, options=options),
    ):
        pass


def test_one_request_is_done_before_start_returns(doubling: Path) -> None:
    with models.session_of("onnxruntime", doubling) as session:
        ended: list[BaseException | None] = []
        inputs, outputs = models.arrays_for(session.inputs), models.arrays_for(session.outputs)
        session.start(inputs, outputs, ended.append)
        assert ended == [None]


def test_ever_new_arrays_do_not_pile_up(doubling: Path) -> None:
    with models.session_of("onnxruntime", doubling) as session:
        kept = [np.full((2, 3), n, np.float32) for n in range(1100)]
        output = np.zeros((2, 3), np.float32)
        for n, array in enumerate(kept):
            models.infer(session, {"x": array}, {"y": output})
            assert output[0, 0] == 2 * n
        assert len(session._bindings) <= 1024


def test_nothing_is_kept_to_be_reported_to_anybody(doubling: Path, tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    code = (
        "import sys; from edgert.backends.registry import backend;"
        "from edgert.backends.base import CompileRequest;"
        "backend('onnxruntime').compile(CompileRequest(sys.argv[1], 'CPU')).close()"
    )
    kept = {"CI", "ORT_DISABLE_TELEMETRY", "XDG_CACHE_HOME"}
    environment = {name: value for name, value in os.environ.items() if name not in kept}
    subprocess.run(
        [sys.executable, "-c", code, str(doubling)],
        env={**environment, "HOME": str(home)},
        check=True,
    )
    assert list(home.rglob("*")) == []


def test_weights_listed_as_inputs_are_no_inputs(tmp_path: Path) -> None:
    """As PyTorch 1.2 wrote them; the sizes it declares give way to those asked for."""
    file = tmp_path / "old.onnx"
    node = onnx.helper.make_node("Add", ["x", "w"], ["y"])
    inputs = [models.value("x", [10, 2]), models.value("w", [2])]
    models.save(file, [node], inputs, [models.value("y", [10, 2])], {"w": np.ones(2, np.float32)})
    assert list(backend("onnxruntime").signature(str(file), {}).inputs) == ["x"]
    with models.session_of("onnxruntime", file, shapes={"x": [1, 2]}) as session:
        assert session.outputs == {"y": TensorSpec("f32", (1, 2))}
        outputs = models.arrays_for(session.outputs)
        models.infer(session, {"x": np.full((1, 2), 4, np.float32)}, outputs)
        assert outputs["y"].tolist() == [[5, 5]]

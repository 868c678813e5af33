from __future__ import annotations

import importlib.util
from pathlib import Path

import numpy as np
import onnx
import pytest

from edgert.backends.registry import backend
from edgert.errors import DeviceError
from tests import models

pytest.importorskip("onnxruntime")

from edgert.backends import onnxruntime_providers as providers  # noqa: E402  after the skip
from edgert.backends.onnxruntime_providers import CARRIERS, Provider  # noqa: E402

needs_plugin = pytest.mark.skipif(
    importlib.util.find_spec("onnxruntime_ep_openvino") is None,
    reason="a plug-in to try: pip install onnxruntime-ep-openvino",
)


@pytest.fixture
def doubling(tmp_path: Path) -> Path:
    return models.doubling(tmp_path / "doubling.onnx")


def refusal(model: Path, **asked: object) -> str:
    with pytest.raises(DeviceError) as caught, models.session_of("onnxruntime", model, **asked):
        pass
    return str(caught.value)


@pytest.mark.parametrize("short", CARRIERS)
def test_a_provider_that_is_absent_names_what_brings_it(short: str, doubling: Path) -> None:
    if any(name.partition(".")[0] == short for name in backend("onnxruntime").devices()):
        pytest.skip(f"there is {short} here")
    said = refusal(doubling, device=short)
    assert said == (
        f"onnxruntime:{short}: there is no execution provider {short!r} here. "
        f"{CARRIERS[short].mend}."
    )


def test_a_provider_that_nobody_knows_is_told_what_there_is(doubling: Path) -> None:
    here = ", ".join(backend("onnxruntime").devices())
    assert refusal(doubling, device="Tpu").endswith(f"'Tpu' here. This build has: {here}.")


@pytest.mark.parametrize(
    ("library", "said"),
    [("missing.so", "cannot open shared object file"), ("text.so", "(invalid ELF|too short)")],
)
def test_a_library_that_is_no_plugin_is_refused(
    library: str, said: str, doubling: Path, tmp_path: Path
) -> None:
    (tmp_path / "text.so").write_text("no library")
    options = {"provider_library": str(tmp_path / library)}
    with (
        pytest.raises(DeviceError, match=f"onnxruntime:Mine: its library cannot be .*{said}"),
        models.session_of("onnxruntime", doubling, device="Mine", options=options),
    ):
        pass


@pytest.mark.parametrize(
    ("short", "given", "exact", "options"),
    [
        ("QNN", {}, False, {"backend_type": "htp"}),
        ("QNN", {"backend_path": "a.so"}, True, {"backend_path": "a.so"}),
        ("QNN", {"soc_model": "60"}, True, {"backend_type": "htp", "soc_model": "60"}),
        ("OpenVINO", {}, False, {}),
        ("OpenVINO", {"load_config": "{}"}, True, {"load_config": "{}"}),
    ],
)
def test_a_plugin_is_given_what_it_needs_besides(
    short: str,
    given: dict[str, str],
    exact: bool,  # noqa: FBT001
    options: dict[str, str],
) -> None:
    provider = Provider(f"{short}ExecutionProvider", object(), CARRIERS[short])
    assert provider.options(given, exact=exact) == options


@pytest.mark.parametrize(
    "options",
    [
        {"optimisation": "extended"},
        {"optimisation": "off"},
        {"arena": False},
        {"spinning": True},
        {"prepacking": False},
    ],
)
def test_options_of_the_session_change_no_result(
    options: dict[str, object], doubling: Path
) -> None:
    with models.session_of("onnxruntime", doubling, options=options) as session:
        outputs = models.arrays_for(session.outputs)
        models.infer(session, {"x": np.full((2, 3), 4, np.float32)}, outputs)
        assert (outputs["y"] == 8).all()


@needs_plugin
@pytest.mark.parametrize("device", ["OpenVINO", "openvino.cpu"])
def test_a_plugin_is_found_by_its_package_and_named_with_its_hardware(
    device: str, doubling: Path
) -> None:
    assert "OpenVINO.CPU" in backend("onnxruntime").devices()
    with models.session_of("onnxruntime", doubling, device=device, whole=True) as session:
        outputs = models.arrays_for(session.outputs)
        models.infer(session, {"x": np.full((2, 3), 4, np.float32)}, outputs)
        assert (outputs["y"] == 8).all()
        report = session.device
    assert report.actual == "onnxruntime:OpenVINO.CPU"
    assert report.placed == "1 of 1 nodes"
    assert ", OpenVINO " in report.runtime


@needs_plugin
def test_what_a_plugin_leaves_is_computed_by_the_cpu_and_told(tmp_path: Path) -> None:
    model = split(tmp_path / "m.onnx")
    cache = tmp_path / "cache"
    cache.mkdir()
    for kept in (0, 1):  # compiled, then as it was kept
        assert len(list(cache.glob("*.onnx"))) == kept
        asked = {"device": "OpenVINO", "cache_dir": str(cache)}
        with models.session_of("onnxruntime", model, **asked) as session:
            outputs = models.arrays_for(session.outputs)
            models.infer(session, {"x": np.arange(-2, 2, dtype=np.float32)}, outputs)
            assert outputs["y"].tolist() == [0, 0, 0, 1]
            report = session.device
        assert report.actual == "onnxruntime:OpenVINO.CPU,CPU"
        assert report.placed == "1 of 2 nodes"
    refusal(model, device="OpenVINO", whole=True, cache_dir=str(cache))
    assert not list(cache.glob("*.none"))


@needs_plugin
def test_hardware_that_a_plugin_has_not_is_refused(doubling: Path) -> None:
    if "OpenVINO.NPU" in providers.names():
        pytest.skip("there is an NPU here")
    said = refusal(doubling, device="OpenVINO.NPU")
    assert "the provider finds no NPU here. It has: OpenVINO.CPU" in said


@needs_plugin
def test_another_library_of_the_same_provider_is_refused(doubling: Path) -> None:
    providers.names()
    said = refusal(doubling, device="OpenVINO", options={"provider_library": "/other.so"})
    assert "OpenVINOExecutionProvider was registered from " in said


def split(path: Path) -> Path:
    """Y = 1 where 2 * x > 1, by an operator that OpenVINO has not."""
    nodes = [
        onnx.helper.make_node("Add", ["x", "x"], ["z"]),
        onnx.helper.make_node("Binarizer", ["z"], ["y"], domain="ai.onnx.ml", threshold=1.0),
    ]
    graph = onnx.helper.make_graph(nodes, "m", [models.value("x", [4])], [models.value("y", [4])])
    opsets = [onnx.helper.make_opsetid("", 17), onnx.helper.make_opsetid("ai.onnx.ml", 3)]
    onnx.save(onnx.helper.make_model(graph, opset_imports=opsets, ir_version=8), path)
    return path

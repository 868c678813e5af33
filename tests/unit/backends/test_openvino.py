import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest

from edgert.backends.base import CompileRequest, DeviceFacts, Session
from edgert.backends.registry import backend
from edgert.errors import DeviceError, ModelError
from edgert.models.catalog import load_catalog
from edgert.models.reader import Models
from edgert.transport.address import Array
from tests import models

pytest.importorskip("openvino")

from edgert.backends.openvino_devices import (  # noqa: E402  after the skip
    Target,
    config_of,
    target_of,
)
from edgert.backends.openvino_runtime import ov  # noqa: E402


@pytest.fixture
def doubling(tmp_path: Path) -> Path:
    return models.doubling(tmp_path / "doubling.onnx")


def test_the_telemetry_of_openvino_is_never_loaded() -> None:
    code = "import sys, edgert.backends.openvino; print('openvino_telemetry' in sys.modules)"
    command = [sys.executable, "-c", code]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout == "False\n"


def test_options_go_to_openvino_and_override_ours(doubling: Path) -> None:
    with models.session_of("openvino", doubling, options={"INFERENCE_PRECISION_HINT": "f16"}) as s:
        assert s.device.precision == "f16"


def test_a_near_miss_of_an_option_is_named(doubling: Path) -> None:
    with (
        pytest.raises(DeviceError, match="Did you mean 'NUM_STREAMS'"),
        models.session_of("openvino", doubling, options={"NUM_STREAM": 1}),
    ):
        pass


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"NUM_STREAMS": "many"}, "Could not read number of streams"),
        ({"NUM_STREAMS": -7}, "Wrong value for property key NUM_STREAMS"),
        ({"PERFORMANCE_HINT": "FAST"}, "LATENCY/THROUGHPUT/CUMULATIVE_THROUGHPUT"),
        ({"INFERENCE_PRECISION_HINT": "f8"}, "Supported values: bf16, f16, f32"),
    ],
)
def test_a_bad_value_of_an_option_is_refused_in_openvinos_words(
    options: dict[str, object], said: str, doubling: Path
) -> None:
    with (
        pytest.raises(DeviceError, match=f"^openvino:CPU, options: .*{said}"),
        models.session_of("openvino", doubling, options=options),
    ):
        pass


@pytest.mark.parametrize(
    ("options", "streams"),
    [({}, 3), ({"PERFORMANCE_HINT": "LATENCY"}, None), ({"NUM_STREAMS": 2}, 2)],
)
def test_streams_are_as_many_as_lanes_unless_a_hint_is_given(
    options: dict[str, object], streams: int | None
) -> None:
    request = CompileRequest("m.onnx", "CPU", requests=4, threads=3, options=options)
    config = config_of(ov.Core(), target_of("CPU", ["CPU"], "place"), request, "place")
    assert config.get("NUM_STREAMS") == streams


@pytest.mark.parametrize(
    ("device", "target"),
    [
        ("NPU", Target("NPU", ("NPU",))),
        ("GPU", Target("GPU", ("GPU",))),
        ("HETERO:GPU.1,CPU", Target("HETERO:GPU.1,CPU", ("GPU.1", "CPU"), "HETERO")),
        ("AUTO:NPU, CPU", Target("AUTO:NPU,CPU", ("NPU", "CPU"), "AUTO")),
    ],
)
def test_what_a_device_means(device: str, target: Target) -> None:
    assert target_of(device, ["CPU", "GPU.0", "GPU.1", "NPU"], "place") == target


@pytest.mark.parametrize(
    ("device", "said"),
    [
        ("AUTO", "it names no device. Write them: AUTO:CPU,NPU"),
        ("HETERO:", "it names no device. Write them: HETERO:CPU,NPU"),
        ("HETERO:GPU,CPU", "there is no device 'GPU' here. OpenVINO has: CPU, NPU"),
        ("AUTO:-NPU", "there is no device '-NPU' here"),
        ("MULTI:CPU", "there is no device 'MULTI:CPU' here"),
    ],
)
def test_what_a_device_may_not_be(device: str, said: str) -> None:
    with pytest.raises(DeviceError, match=f"^place: {said}"):
        target_of(device, ["CPU", "NPU"], "place")


@pytest.mark.parametrize(
    ("device", "placed"),
    [("HETERO:CPU", "1 of 1 operators on CPU"), ("AUTO:CPU", "")],
)
def test_where_openvino_chooses_what_it_did_is_read_back(
    device: str, placed: str, doubling: Path
) -> None:
    asked = {"device": device, "whole": True, "requests": 2, "threads": 2}
    with models.session_of("openvino", doubling, **asked) as session:
        outputs = models.arrays_for(session.outputs)
        models.infer(session, {"x": np.ones((2, 3), np.float32)}, outputs)
        assert (outputs["y"] == 2).all()
        report = session.device
    assert report.requested == f"openvino:{device}"
    assert (report.actual, report.placed) == ("openvino:CPU", placed)


@pytest.mark.parametrize("device", ["NPU", "GPU", "MULTI:CPU"])
def test_a_plugin_without_its_device_is_no_device(device: str, doubling: Path) -> None:
    if device in backend("openvino").devices():
        pytest.skip(f"there is a {device} here")
    with (
        pytest.raises(DeviceError, match=f"there is no device '{device}' here. OpenVINO has: CPU"),
        models.session_of("openvino", doubling, device=device),
    ):
        pass


def test_a_shape_that_breaks_the_graph_is_refused(tmp_path: Path) -> None:
    model = models.convolution(tmp_path / "m.onnx", ["n", 3, "h", "w"])
    with pytest.raises(ModelError, match="the shape does not fit the model"):
        backend("openvino").signature(str(model), {"x": [1, 2, 8, 8]})


def double_once(model: Path, cache: Path) -> None:
    with models.session_of("openvino", model, cache_dir=str(cache)) as session:
        outputs = models.arrays_for(session.outputs)
        models.infer(session, {"x": np.ones((2, 3), np.float32)}, outputs)
        assert (outputs["y"] == 2).all()


def test_compiled_models_are_cached_and_garbled_ones_do_no_harm(
    doubling: Path, tmp_path: Path
) -> None:
    cache = tmp_path / "cache"
    double_once(doubling, cache)
    blobs = list(cache.rglob("*.blob"))
    assert blobs
    double_once(doubling, cache)
    for blob in blobs:
        blob.write_bytes(blob.read_bytes()[: blob.stat().st_size // 2])
    double_once(doubling, cache)
    for blob in blobs:
        blob.write_bytes(b"garbled" * 100)
    double_once(doubling, cache)


def test_another_driver_or_device_has_a_folder_of_its_own(
    doubling: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache = tmp_path / "cache"
    double_once(doubling, cache)
    double_once(doubling, cache)
    (own,) = cache.iterdir()
    told = DeviceFacts("the same CPU", "another driver")
    monkeypatch.setattr(type(backend("openvino")), "describe", lambda *_: told)
    double_once(doubling, cache)
    (other,) = set(cache.iterdir()) - {own}
    assert list(other.glob("*.blob"))


def test_other_options_are_compiled_apart(doubling: Path, tmp_path: Path) -> None:
    for hint in ("f32", "f16", "f32"):
        asked = {"cache_dir": str(tmp_path), "options": {"INFERENCE_PRECISION_HINT": hint}}
        with models.session_of("openvino", doubling, **asked) as session:
            assert session.device.precision == hint
    assert len(list(tmp_path.rglob("*.blob"))) == 2


# In a process of its own, which may write no file larger than this: a disk that is full.
FULL = """
import resource, sys
from pathlib import Path
resource.setrlimit(resource.RLIMIT_FSIZE, (64, 64))
from tests.unit.backends.test_openvino import double_once
for _ in range(2):
    double_once(Path(sys.argv[1]), Path(sys.argv[2]))
print("doubled twice")
"""


def test_a_full_disk_costs_a_compilation_and_no_result(doubling: Path, tmp_path: Path) -> None:
    command = [sys.executable, "-c", FULL, str(doubling), str(tmp_path / "cache")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "doubled twice\n"), done.stderr


def test_a_cache_that_cannot_be_written_does_no_harm(doubling: Path, tmp_path: Path) -> None:
    no_folder = tmp_path / "file"
    no_folder.write_text("not a folder")
    double_once(doubling, no_folder)


def test_ever_new_arrays_do_not_pile_up(doubling: Path) -> None:
    with models.session_of("openvino", doubling) as session:
        kept = [np.full((2, 3), n, np.float32) for n in range(1100)]
        output = np.zeros((2, 3), np.float32)
        for n, array in enumerate(kept):
            models.infer(session, {"x": array}, {"y": output})
            assert output[0, 0] == 2 * n
        assert len(session._inputs[0].by_address) <= 1024


def test_a_frozen_tensorflow_graph_is_what_the_catalog_says_and_fills_in_place() -> None:
    entry = load_catalog().model("person-ssdlite")
    path = Models().resolve("person-ssdlite")
    shapes = {name: list(sizes) for name, sizes in entry.shape.items()}
    with models.session_of("openvino", path, shapes=shapes, requests=2, threads=2) as session:
        assert session.inputs == entry.fixed_inputs
        assert session.outputs == entry.outputs
        image = np.random.default_rng(3).integers(0, 256, (1, 300, 300, 3), np.uint8)
        found = [_detect(session, image) for _ in range(2)]  # one on each request
        assert session.copied_bytes == 0
    for outputs in found:
        assert not any((array == -1).any() for array in outputs.values())
        assert outputs["num_detections"] == [100]
        assert (np.diff(outputs["detection_scores"][0]) <= 0).all()
        np.testing.assert_allclose(outputs["detection_boxes"], found[0]["detection_boxes"])


def test_a_graph_that_was_kept_as_read_is_the_same_model(tmp_path: Path) -> None:
    entry = load_catalog().model("person-ssdlite")
    path = Models().resolve("person-ssdlite")
    shapes = {name: list(sizes) for name, sizes in entry.shape.items()}
    asked = {"shapes": shapes, "requests": 1, "threads": 2, "cache_dir": str(tmp_path)}
    image = np.random.default_rng(3).integers(0, 256, (1, 300, 300, 3), np.uint8)

    def detected() -> dict[str, Array]:
        with models.session_of("openvino", path, **asked) as session:
            assert session.inputs == entry.fixed_inputs
            assert session.outputs == entry.outputs
            return _detect(session, image)

    with models.session_of("openvino", path, **{**asked, "cache_dir": ""}) as session:
        reference = _detect(session, image)
    first, again = detected(), detected()
    (kept,) = tmp_path.glob("read-*.xml")
    kept.write_text("<not a model>")
    for found in (first, again, detected()):
        for name, array in reference.items():
            np.testing.assert_allclose(found[name], array, atol=1e-6)


def _detect(session: Session, image: Array) -> dict[str, Array]:
    outputs = models.arrays_for(session.outputs)
    for array in outputs.values():
        array[:] = -1
    models.infer(session, {"image_tensor": image}, outputs)
    return outputs


def test_an_operator_that_openvino_lacks_is_named(tmp_path: Path) -> None:
    pytest.importorskip("ai_edge_litert")
    from tests import tflite_models

    file = tflite_models.blending(tmp_path / "m.tflite")
    with pytest.raises(ModelError) as caught, models.session_of("openvino", file):
        pass
    assert str(caught.value) == (
        "model 'm.tflite': OpenVINO does not support all of its operators; it lacks IF. "
        "Ask for a runtime that has them, or export the model without them."
    )


def test_an_operator_of_somebody_else_is_named(tmp_path: Path) -> None:
    node = onnx.helper.make_node("Blur", ["x"], ["y"], domain="their")
    x, y = models.value("x", (1,)), models.value("y", (1,))
    file = models.save(tmp_path / "m.onnx", [node], [x], [y])
    with pytest.raises(ModelError, match=r"; it lacks their\.Blur\. Ask"):
        backend("openvino").signature(str(file), {})

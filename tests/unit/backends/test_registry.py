import subprocess
import sys
from pathlib import Path

import pytest

from edgert import isolate
from edgert.backends import registry
from edgert.errors import DeviceError, ModelError
from tests import models


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("NPU", (None, "NPU")),
        ("GPU.1", (None, "GPU.1")),
        ("openvino:NPU", ("openvino", "NPU")),
        ("emulated:NPU", ("emulated", "NPU")),
        ("tflite:external:/lib/a.so", ("tflite", "external:/lib/a.so")),
        (" onnxruntime:CPU ", ("onnxruntime", "CPU")),
    ],
)
def test_parse_device(text: str, expected: tuple[str | None, str]) -> None:
    assert registry.parse_device(text) == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("openvini:CPU", "there is no backend of that name. Did you mean 'openvino'"),
        ("zzz:CPU", "There are: openvino, onnxruntime, tflite, emulated"),
        ("AUTO:NPU,CPU", "chooses by itself"),
        ("openvino:", "no device is named"),
        ("", "no device is named"),
    ],
)
def test_parse_device_refuses(text: str, message: str) -> None:
    with pytest.raises(DeviceError, match=message):
        registry.parse_device(text)


def test_candidates() -> None:
    assert registry.candidates("NPU", "onnx") == ("openvino", "onnxruntime")
    assert registry.candidates("NPU", "tensorflow") == ("openvino",)
    assert registry.candidates("edgetpu", "tflite") == ("openvino", "tflite")
    assert registry.candidates("onnxruntime:CPU", "onnx") == ("onnxruntime",)
    assert registry.candidates("emulated:NPU", "tflite") == ("emulated",)
    assert registry.candidates("NPU", "no-such-format") == ()


def test_an_unknown_backend_names_the_near_miss() -> None:
    with pytest.raises(DeviceError, match="Did you mean 'onnxruntime'"):
        registry.backend("onnx-runtime")


# Run apart, with a folder of packages of its own before all others.
ASK = """
import sys
sys.path.insert(0, sys.argv[1])
from edgert.backends.registry import backend
from edgert.errors import DeviceError
try:
    print(backend(sys.argv[2]).name)
except DeviceError as error:
    print(error)
"""


def ask(folder: Path, name: str, before: str = "") -> str:
    command = [sys.executable, "-c", before + ASK, str(folder), name]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def test_a_backend_that_is_not_installed_names_the_extra(tmp_path: Path) -> None:
    hide = "import sys; sys.modules['openvino'] = None\n"
    assert ask(tmp_path, "openvino", hide) == (
        "backend 'openvino': it is not installed. Run: pip install 'edgert[openvino]'."
    )


def test_a_broken_library_is_told_apart_from_a_missing_one(tmp_path: Path) -> None:
    (tmp_path / "openvino").mkdir()
    (tmp_path / "openvino" / "__init__.py").write_text("import no_such_part")
    said = ask(tmp_path, "openvino")
    assert "it is installed and cannot be imported: No module named 'no_such_part'" in said


def third_party(folder: Path) -> None:
    (folder / "their_backend.py").write_text("class Theirs:\n    name = 'theirs'\n")
    metadata = folder / "their_backend-1.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: their-backend\nVersion: 1\n")
    (metadata / "entry_points.txt").write_text(
        "[edgert.backends]\ntheirs = their_backend:Theirs\nlost = their_backend:Lost\n"
    )


def test_third_parties_add_backends_by_entry_points(tmp_path: Path) -> None:
    third_party(tmp_path)
    assert ask(tmp_path, "theirs") == "theirs"
    assert "cannot be imported" in ask(tmp_path, "lost")
    assert "Did you mean 'theirs'" in ask(tmp_path, "their")


def test_the_registry_loads_no_vendor_library() -> None:
    code = (
        "import sys; from edgert.backends import registry; registry.candidates('CPU', 'onnx');"
        "print({'openvino', 'onnxruntime', 'onnx', 'cv2'} & set(sys.modules))"
    )
    command = [sys.executable, "-c", code]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout == "set()\n"


def test_read_signature_in_a_child(tmp_path: Path) -> None:
    model = models.convolution(tmp_path / "m.onnx", ["n", 3, 8, "w"])
    read = isolate.call(
        "edgert.backends.registry:read_signature",
        {"path": str(model), "shapes": {}, "format": "onnx"},
        60,
        "model",
        ModelError,
    )
    assert read["inputs"] == {"x": {"dtype": "f32", "shape": [None, 3, 8, None]}}
    assert read["outputs"] == {"y": {"dtype": "f32", "shape": [None, None]}}


def test_read_signature_of_a_damaged_model_keeps_its_class_and_place(tmp_path: Path) -> None:
    broken = tmp_path / "broken.onnx"
    broken.write_bytes(b"no model")
    with pytest.raises(ModelError, match=r"model 'broken\.onnx': OpenVINO cannot read it: \w+"):
        isolate.call(
            "edgert.backends.registry:read_signature",
            {"path": str(broken), "shapes": {}, "format": "onnx"},
            60,
            "model",
            ModelError,
        )


def test_a_format_that_nobody_reads_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DeviceError, match="no runtime that reads caffe is here"):
        registry.read_signature(str(tmp_path / "m"), {}, "caffe")


def test_inspect_counts_operators_parameters_and_macs(tmp_path: Path) -> None:
    found = registry.inspect(str(models.matrix(tmp_path / "m.onnx")), "onnx", {})
    assert found["operators"] == {"MatMul": 1}
    assert found["parameters"] == 20
    assert found["macs"] == 40
    assert found["notes"] == []
    assert found["inputs"] == {"x": {"dtype": "f32", "shape": [2, 4]}}


def test_inspect_of_a_convolution(tmp_path: Path) -> None:
    model = models.convolution(tmp_path / "m.onnx", ["n", 3, "h", "w"])
    still_open = registry.inspect(str(model), "onnx", {})
    assert still_open["macs"] is None
    assert still_open["notes"] == ["MACs are not known while shapes are open"]
    fixed = registry.inspect(str(model), "onnx", {"x": [1, 3, 5, 7]})
    assert fixed["macs"] == 5 * 7 * 4 * 3 * 3 * 3


def test_inspect_of_a_detector(yolox_onnx: Path) -> None:
    found = registry.inspect(str(yolox_onnx), "onnx", {})
    assert found["parameters"] == pytest.approx(0.91e6, rel=0.02)  # as its authors say
    assert found["macs"] == pytest.approx(1.08e9 / 2, rel=0.05)  # 1.08 GFLOPs

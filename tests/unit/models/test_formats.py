"""A file that is not what its name says is told apart before anything reads it."""

from __future__ import annotations

from pathlib import Path

import pytest

from edgert.errors import ModelError
from edgert.models.formats import files_of, format_of

ONNX = b"\x08\x06\x12\x07pytorch"
GRAPH_DEF = b"\x0a\x20\x0a\x05image"
TFLITE = b"\x1c\0\0\0TFL3" + bytes(20)
IR = b'<?xml version="1.0"?>\n<net name="n" version="11">'


@pytest.mark.parametrize(
    ("name", "content", "expected"),
    [
        ("a.onnx", ONNX, "onnx"),
        ("a.ONNX", ONNX, "onnx"),
        ("a.pb", GRAPH_DEF, "tensorflow"),
        ("a.tflite", TFLITE, "tflite"),
        ("a.xml", IR, "openvino-ir"),
    ],
)
def test_models_are_known(name: str, content: bytes, expected: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(content)
    (tmp_path / "a.bin").write_bytes(b"weights")
    assert format_of(tmp_path / name, "model 'm'") == expected


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("a.onnx", b"", "is empty. Fetch it again."),
        ("a.onnx", b"\n<!DOCTYPE html><p>404", "is not onnx: it is an HTML page"),
        ("a.onnx", b"version https://git-lfs.github.com/spec/v1\n", "a Git LFS pointer"),
        ("a.onnx", b"PK\x03\x04", "a zip archive"),
        ("a.onnx", TFLITE, "it is a TensorFlow Lite model"),
        ("a.onnx", b"hello", "its first byte is of no such file"),
        ("a.pb", b"\x08\x01\x12", "it is a SavedModel, only frozen graphs are read"),
        ("a.tflite", ONNX, "the mark TFL3 is missing"),
        ("a.xml", b"<?xml version='1.0'?><svg/>", "there is no <net> in it"),
        ("a.xml", IR, "a.bin' are missing. Put them beside the .xml."),
        ("a.bin2", b"PK\x03\x04", "has no ending of a model. Known are .onnx (onnx), .xml"),
    ],
)
def test_others_are_told(name: str, content: bytes, said: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(ModelError) as caught:
        format_of(tmp_path / name, "model 'm'")
    assert said in str(caught.value)


def test_what_is_no_file_is_told(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="there is no file"):
        format_of(tmp_path / "a.onnx", "model 'm'")
    (tmp_path / "a.onnx").mkdir()
    with pytest.raises(ModelError, match="is a directory"):
        format_of(tmp_path / "a.onnx", "model 'm'")


def test_an_ir_has_two_files() -> None:
    assert files_of(Path("x/a.xml")) == (Path("x/a.xml"), Path("x/a.bin"))
    assert files_of(Path("x/a.onnx")) == (Path("x/a.onnx"),)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("a.pdmodel", "is a Paddle model, which is not read. Convert it: python -c "),
        ("a.pt", "is a PyTorch model, which is not read. Export it with torch.onnx.export."),
        ("a.hef", "compiled for one device, which is not read. Give the model it was compiled"),
    ],
)
def test_models_of_other_tools_are_told_the_way(name: str, said: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_bytes(b"abc")
    with pytest.raises(ModelError) as caught:
        format_of(path, "here")
    assert said in str(caught.value)


def test_a_saved_model_is_told_the_way_by_its_folder_and_by_its_file(tmp_path: Path) -> None:
    file = tmp_path / "saved_model.pb"
    file.write_bytes(b"\x08\x01\x12")
    for named in (tmp_path, file):
        with pytest.raises(ModelError, match="SavedModel, only frozen graphs") as caught:
            format_of(named, "here")
        assert f"ov.convert_model('{tmp_path}')" in str(caught.value)

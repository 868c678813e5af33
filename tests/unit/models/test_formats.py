"""A file that is not what its name says is told apart before anything reads it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from edgert.errors import ModelError
from edgert.models.formats import MAX_BYTES, files_of, format_of, named_by

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
        ("a.pdmodel", b"\x0a\xdf\x35\x08\x00", "paddle"),
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
        ("a.onnx", b"hello", "no such file begins like this"),
        ("a.pb", b"\x08\x01\x12", "it is a SavedModel, whose file is called saved_model.pb and"),
        ("a.pdmodel", b"hello", "is not paddle: no such file begins like this"),
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


def test_weights_beside_a_model_are_part_of_it(tmp_path: Path) -> None:
    for name in ("a.xml", "a.bin", "a.pdmodel", "a.pdiparams", "b.pdmodel", "a.onnx"):
        (tmp_path / name).write_bytes(b"1")

    def names(model: str) -> list[str]:
        return [file.name for file in files_of(tmp_path / model, "here")]

    assert names("a.xml") == ["a.xml", "a.bin"]
    assert names("a.pdmodel") == ["a.pdmodel", "a.pdiparams"]
    assert names("b.pdmodel") == ["b.pdmodel"]  # one without weights has no such file
    assert names("a.onnx") == ["a.onnx"]


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("a.pdiparams", "is the weights of a Paddle model, which is not read. Give the .pdmodel"),
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


def saved_model(folder: Path) -> Path:
    (folder / "variables").mkdir(parents=True)
    (folder / "saved_model.pb").write_bytes(b"\x08\x01\x12")
    (folder / "variables" / "variables.index").write_bytes(b"index")
    (folder / "variables" / "variables.data-00000-of-00001").write_bytes(b"data")
    (folder / "fingerprint.pb").write_bytes(b"of no use to us")
    return folder


def test_a_saved_model_is_its_graph_and_its_variables(tmp_path: Path) -> None:
    folder = saved_model(tmp_path / "net")
    assert format_of(folder, "here") == "saved-model"
    assert named_by(folder / "saved_model.pb") == named_by(folder) == folder
    assert [str(file.relative_to(folder)) for file in files_of(folder, "here")] == [
        "saved_model.pb",
        "variables/variables.data-00000-of-00001",
        "variables/variables.index",
    ]


def test_what_a_model_may_not_be_made_of(tmp_path: Path) -> None:
    """A pipe would hold up whoever hashes it; a huge file, and a million small ones, too."""
    folder = saved_model(tmp_path / "net")
    pipe = folder / "variables" / "pipe"
    os.mkfifo(pipe)
    with pytest.raises(ModelError, match=r"pipe' is no regular file\. Put the model's own there"):
        files_of(folder, "here")
    pipe.unlink()
    with pipe.open("wb") as file:
        file.truncate(MAX_BYTES)  # of holes
    with pytest.raises(ModelError, match="and a model may have 17179869184"):
        files_of(folder, "here")
    pipe.unlink()
    for number in range(1024):
        (folder / "variables" / str(number)).touch()
    with pytest.raises(ModelError, match="there are more than 1024 files in"):
        files_of(folder, "here")
    (folder / "saved_model.pb").write_bytes(b"hello")
    with pytest.raises(ModelError, match="is not the graph of a saved-model: no such file begins"):
        format_of(folder, "here")

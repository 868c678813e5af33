"""What kind of model a file or folder is, by its name, and whether its first bytes agree."""

from __future__ import annotations

import os
from itertools import islice
from pathlib import Path

from edgert.errors import ModelError
from edgert.models.onnx_weights import weights_beside
from edgert.regular import open_regular

FORMATS = {
    ".onnx": "onnx",
    ".xml": "openvino-ir",
    ".pb": "tensorflow",
    ".tflite": "tflite",
    ".pdmodel": "paddle",
}
SAVED_MODEL = "saved-model"  # the one format that is a folder
HEAD_BYTES = 512
TFLITE_MAGIC = b"TFL3"  # at byte 4: the file identifier of a flatbuffer

# First bytes of files that are taken for models by mistake.
LOOKALIKES: tuple[tuple[bytes, str], ...] = (
    (b"version https://git-lfs", "a Git LFS pointer, not the file it stands for"),
    (b"<!doctype html", "an HTML page"),
    (b"<html", "an HTML page"),
    (b"PK\x03\x04", "a zip archive (PyTorch and Keras files are such archives)"),
    (b"\x1f\x8b", "a gzip archive"),
    (b"\x89HDF", "an HDF5 file (Keras)"),
    (b"\x80\x02", "a Python pickle (PyTorch)"),
)
# Models of other tools, by their endings: what they are, and how they become one that is read.
OTHERS = {
    ".pdiparams": ("the weights of a Paddle model", "Give the .pdmodel beside it"),
    ".pt": ("a PyTorch model", "Export it with torch.onnx.export"),
    ".pth": ("a PyTorch model", "Export it with torch.onnx.export"),
    ".ckpt": ("a checkpoint", "Export the model to ONNX"),
    ".h5": ("a Keras model", "Export it to TFLite or ONNX"),
    ".keras": ("a Keras model", "Export it to TFLite or ONNX"),
    ".ort": ("a model in ONNX Runtime's own format", "Give the .onnx it was made of"),
    ".blob": ("a model compiled for one device", "Give the model it was compiled from"),
    ".engine": ("a model compiled for one device", "Give the model it was compiled from"),
    ".rknn": ("a model compiled for one device", "Give the model it was compiled from"),
    ".hef": ("a model compiled for one device", "Give the model it was compiled from"),
}
_GRAPH = "saved_model.pb"  # what a SavedModel's folder is known by
_VARIABLES = "variables"
_MOST_FILES = 1024
MAX_BYTES = 16 << 30  # of all files of a model: more is a mistake, or a trap for who reads it
# Protobuf writes fields in the order of their numbers; tag = number << 3 | wire type.
# ONNX ModelProto: ir_version, opset_import, producer_name, producer_version, domain, graph.
# TensorFlow GraphDef: node, library, versions. SavedModel: schema version, graphs.
# Paddle ProgramDesc: blocks, version.
FIRST_TAGS = {
    "onnx": {0x08, 0x42, 0x12, 0x1A, 0x22, 0x3A},
    "tensorflow": {0x0A, 0x12, 0x22},
    SAVED_MODEL: {0x08, 0x12},
    "paddle": {0x0A, 0x22},
}


def named_by(path: Path) -> Path:
    """Return what names a model: the folder of a SavedModel, also where its graph is given."""
    return path.parent if path.name == _GRAPH else path


def is_saved_model(path: Path) -> bool:
    """Return whether a path is the folder of a SavedModel."""
    return (path / _GRAPH).is_file()


def format_of(path: Path, place: str) -> str:
    """Return the format of a model, having looked at its first bytes.

    Raises:
        ModelError: It is missing, a directory of something else, empty, or not what its name says.
    """
    if path.is_dir():
        return _format_of_folder(path, place)
    found = FORMATS.get(path.suffix.lower())
    head = _head(path, place)
    other = OTHERS.get(path.suffix.lower())
    if other is not None:
        what, mend = other
        raise ModelError(place, f"'{path}' is {what}, which is not read", mend)
    if found is None:
        known = ", ".join(f"{suffix} ({name})" for suffix, name in FORMATS.items())
        raise ModelError(place, f"'{path}' has no ending of a model", f"Known are {known}")
    fault = _disagreement(found, head)
    if fault:
        raise ModelError(place, f"'{path}' is not {found}: {fault}", "Give the model file itself")
    weights = path.with_suffix(".bin")
    if found == "openvino-ir" and not weights.is_file():
        raise ModelError(place, f"the weights '{weights}' are missing", "Put them beside the .xml")
    return found


def files_of(path: Path, place: str) -> tuple[Path, ...]:
    """Return every file that a model consists of, the one that was named first.

    Raises:
        ModelError: One is no regular file, or there is too much of them.
    """
    files = (path, *_beside(path))
    if path.is_dir():
        files = (path / _GRAPH, *_variables(path, place))
    for file in files:
        if not file.is_file():
            raise ModelError(place, f"'{file}' is no regular file", "Put the model's own there")
    total = sum(file.stat().st_size for file in files)
    if total > MAX_BYTES:
        fault = f"it has {total} bytes, and a model may have {MAX_BYTES}"
        raise ModelError(place, fault, "Give a smaller one")
    return files


def _beside(path: Path) -> tuple[Path, ...]:
    """Return the files of weights that some formats keep beside the model's."""
    found = FORMATS.get(path.suffix.lower())
    if found == "onnx":
        return weights_beside(path)
    if found == "openvino-ir":
        return (path.with_suffix(".bin"),)
    weights = path.with_suffix(".pdiparams")  # a Paddle model need not have any
    return (weights,) if found == "paddle" and os.path.lexists(weights) else ()


def _variables(folder: Path, place: str) -> list[Path]:
    """Return the files of a SavedModel's weights, by name; what is constant has none."""
    try:
        found = sorted(islice((folder / _VARIABLES).iterdir(), _MOST_FILES + 1))
    except FileNotFoundError:
        return []
    if len(found) > _MOST_FILES:
        fault = f"there are more than {_MOST_FILES} files in '{folder / _VARIABLES}'"
        raise ModelError(place, fault, "Export the model anew")
    return found


def _head(path: Path, place: str) -> bytes:
    try:
        with open_regular(path) as file:
            head = file.read(HEAD_BYTES)
    except FileNotFoundError:
        raise ModelError(place, f"there is no file '{path}'", "Mend the path") from None
    except OSError as error:
        fault = f"cannot read '{path}': {error.strerror}"
        raise ModelError(place, fault, "Let it be read by this user") from None
    if not head:
        raise ModelError(place, f"'{path}' is empty", "Fetch it again")
    return head


def _format_of_folder(path: Path, place: str) -> str:
    graph = path / _GRAPH
    if not graph.exists():
        raise ModelError(place, f"'{path}' is a directory", "Name the model file in it")
    fault = _disagreement(SAVED_MODEL, _head(graph, place))
    if fault:
        mend = "Give the folder of a SavedModel as it was exported"
        raise ModelError(place, f"'{graph}' is not the graph of a {SAVED_MODEL}: {fault}", mend)
    return SAVED_MODEL


def _disagreement(expected: str, head: bytes) -> str:
    start = head.lstrip(b"\xef\xbb\xbf \t\r\n").lower()
    for magic, what in LOOKALIKES:
        if head.startswith(magic) or start.startswith(magic):
            return f"it is {what}"
    if expected == "tflite":
        return "" if head[4:8] == TFLITE_MAGIC else "the mark TFL3 is missing"
    if head[4:8] == TFLITE_MAGIC:
        return "it is a TensorFlow Lite model"
    if expected == "openvino-ir":
        return "" if b"<net" in head else "there is no <net> in it"
    if expected == "tensorflow" and head[0] == 0x08:
        return f"it is a SavedModel, whose file is called {_GRAPH} and named by its folder"
    return "" if head[0] in FIRST_TAGS[expected] else "no such file begins like this"

"""What kind of model a file is, by its name, and whether its first bytes agree."""

from __future__ import annotations

from pathlib import Path

from edgert.errors import ModelError
from edgert.regular import open_regular

FORMATS = {
    ".onnx": "onnx",
    ".xml": "openvino-ir",
    ".pb": "tensorflow",
    ".tflite": "tflite",
}
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
_TO_IR = "python -c \"import openvino as ov; ov.save_model(ov.convert_model('{}'), 'model.xml')\""
# Models of other tools, by their endings: what they are, and how they become one that is read.
OTHERS = {
    ".pdmodel": ("a Paddle model", f"Convert it: {_TO_IR}"),
    ".pdiparams": ("the weights of a Paddle model", "Convert its .pdmodel or .json to ONNX"),
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
_SAVED_MODEL = "saved_model.pb"
# Protobuf writes fields in the order of their numbers; tag = number << 3 | wire type.
# ONNX ModelProto: ir_version, opset_import, producer_name, producer_version, domain, graph.
# TensorFlow GraphDef: node, library, versions.
FIRST_TAGS = {
    "onnx": {0x08, 0x42, 0x12, 0x1A, 0x22, 0x3A},
    "tensorflow": {0x0A, 0x12, 0x22},
}


def format_of(path: Path, place: str) -> str:
    """Return the format of a model file, having looked at its first bytes.

    Raises:
        ModelError: It is missing, a directory, empty, or not what its name says.
    """
    found = FORMATS.get(path.suffix.lower())
    head = _head(path, place)
    other = OTHERS.get(path.suffix.lower())
    if other is not None:
        what, mend = other
        raise ModelError(place, f"'{path}' is {what}, which is not read", mend.format(path))
    if found is None:
        known = ", ".join(f"{suffix} ({name})" for suffix, name in FORMATS.items())
        raise ModelError(place, f"'{path}' has no ending of a model", f"Known are {known}")
    fault = _disagreement(found, head)
    if fault:
        mend = "Give the model file itself"
        if path.name == _SAVED_MODEL:
            mend = f"Convert its folder: {_TO_IR.format(path.parent)}"
        raise ModelError(place, f"'{path}' is not {found}: {fault}", mend)
    weights = path.with_suffix(".bin")
    if found == "openvino-ir" and not weights.is_file():
        raise ModelError(place, f"the weights '{weights}' are missing", "Put them beside the .xml")
    return found


def files_of(path: Path) -> tuple[Path, ...]:
    """Return every file a model consists of: an OpenVINO IR keeps its weights beside it."""
    if FORMATS.get(path.suffix.lower()) == "openvino-ir":
        return (path, path.with_suffix(".bin"))
    return (path,)


def _head(path: Path, place: str) -> bytes:
    try:
        with open_regular(path) as file:
            head = file.read(HEAD_BYTES)
    except FileNotFoundError:
        raise ModelError(place, f"there is no file '{path}'", "Mend the path") from None
    except IsADirectoryError:
        raise _directory(path, place) from None
    except OSError as error:
        fault = f"cannot read '{path}': {error.strerror}"
        raise ModelError(place, fault, "Let it be read by this user") from None
    if not head:
        raise ModelError(place, f"'{path}' is empty", "Fetch it again")
    return head


def _directory(path: Path, place: str) -> ModelError:
    if (path / _SAVED_MODEL).is_file():
        fault = f"'{path}' is a SavedModel, only frozen graphs are read"
        return ModelError(place, fault, f"Convert it: {_TO_IR.format(path)}")
    return ModelError(place, f"'{path}' is a directory", "Name the model file in it")


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
        return "it is a SavedModel, only frozen graphs are read"
    return "" if head[0] in FIRST_TAGS[expected] else "its first byte is of no such file"

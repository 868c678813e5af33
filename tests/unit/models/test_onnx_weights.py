"""ONNX models whose weights lie in files beside them: found without a parser, hashed, too."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from edgert.models.cache import Cache
from edgert.models.formats import files_of
from edgert.models.onnx_weights import weights_beside
from edgert.models.reader import Models


def save(folder: Path, factor: float, location: str = "weights/net.data") -> Path:
    """Write y = x * factor, its factors in a file beside it."""
    factors = numpy_helper.from_array(np.full((8, 8), factor, np.float32), "w")
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, 8]) for name in "xy"]
    node = helper.make_node("MatMul", ["x", "w"], ["y"])
    graph = helper.make_graph([node], "g", ends[:1], ends[1:], [factors])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    beside = folder / location
    beside.parent.mkdir(parents=True, exist_ok=True)
    beside.unlink(missing_ok=True)
    path = folder / "net.onnx"
    onnx.save_model(
        model, path, save_as_external_data=True, location=location, size_threshold=0
    )  # fmt: skip
    return path


@pytest.mark.parametrize("location", ["net.data", "weights/net.data", f"{'d' * 200}.data"])
def test_weights_beside_a_model_are_its_files(tmp_path: Path, location: str) -> None:
    path = save(tmp_path, 1, location)
    assert weights_beside(path) == (tmp_path / location,)
    assert files_of(path, "model") == (path, tmp_path / location)


def test_other_weights_make_another_model(tmp_path: Path) -> None:
    models = Models(folder=tmp_path, cache=Cache(tmp_path / "cache"))
    path = save(tmp_path, 1)
    bytes_before = path.read_bytes()
    before = models.locate(str(path), pull=False).sha256
    assert models.locate(str(path), pull=False).sha256 == before
    save(tmp_path, 2)
    assert path.read_bytes() == bytes_before
    assert models.locate(str(path), pull=False).sha256 != before


def test_what_is_not_there_or_not_below_the_folder_is_none_of_its_files(tmp_path: Path) -> None:
    inside = tmp_path / "in"
    path = save(inside, 1)
    (inside / "weights/net.data").unlink()
    assert weights_beside(path) == ()
    (tmp_path / "out.data").write_bytes(b"secret")
    path.write_bytes(path.read_bytes() + b"\x0a\x08location\x12\x0b../out.data")
    assert weights_beside(path) == ()


def test_bytes_that_look_like_a_mark_do_no_harm(tmp_path: Path) -> None:
    path = tmp_path / "net.onnx"
    for tail in (b"", b"\x05", b"\x7f\0\0", b"\xff\x07ab", b"\x03\xff\xfe\xfd", b"\x01/"):
        path.write_bytes(b"\x08\x08\x0a\x08location\x12" + tail)
        assert weights_beside(path) == ()

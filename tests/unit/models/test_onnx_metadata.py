from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from edgert.errors import ModelError
from edgert.models.onnx_metadata import read_metadata

onnx = pytest.importorskip("onnx", reason="needs the extra 'onnxruntime'")


def file_of(folder: Path, properties: dict[str, str]) -> Path:
    weights = onnx.numpy_helper.from_array(np.zeros((64, 64), np.float32), "w")
    graph = onnx.helper.make_graph([], "g", [], [], [weights])
    model = onnx.helper.make_model(graph)
    onnx.helper.set_model_props(model, properties)
    path = folder / "m.onnx"
    path.write_bytes(model.SerializeToString())
    return path


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=40)
@given(st.dictionaries(st.text(max_size=20), st.text(max_size=300), max_size=4))
def test_it_reads_what_onnx_wrote(tmp_path: Path, properties) -> None:
    assert read_metadata(str(file_of(tmp_path, properties))) == properties


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=100)
@given(st.data())
def test_a_damaged_file_is_a_fault_or_says_less(tmp_path: Path, data) -> None:
    content = bytearray(file_of(tmp_path, {"a": "b" * 40, "c": "d"}).read_bytes())
    content = content[: data.draw(st.integers(0, len(content)))]
    for at in data.draw(st.lists(st.integers(0, 60))):
        if at < len(content):
            content[-1 - at] = data.draw(st.integers(0, 255))
    path = tmp_path / "damaged.onnx"
    path.write_bytes(content)
    with suppress(ModelError):  # nothing else may come out of it
        assert all(isinstance(value, str) for value in read_metadata(str(path)).values())


@pytest.mark.parametrize("content", [b"", b"\x07", b"\x72\x7f", b"\xff" * 20])
def test_what_is_no_message_is_told(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "damaged.onnx"
    path.write_bytes(content)
    with pytest.raises(ModelError, match="its metadata is damaged"):
        read_metadata(str(path))


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="cannot be read: No such file"):
        read_metadata(str(tmp_path / "none.onnx"))

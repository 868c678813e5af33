"""What a plug-in compiled is kept, is loaded only if it is whole, and never stands in the way."""

from __future__ import annotations

import importlib.util
import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from edgert.backends.once import infer_once
from edgert.backends.onnxruntime_kept import Opened, open_or_keep
from edgert.backends.placement import Placement
from edgert.errors import DeviceError
from tests import models

PLACED = Placement(7, 9, "nodes")
FUSED = Placement(1, 3, "nodes")  # the same two are left to the CPU


class Compiler:
    """Opens a session as a provider does that writes what it compiled; notes what it is asked.

    Args:
        writes: Whether it writes what it is to keep.
        refuses: What it refuses: ``kept`` files, models ``to keep``, to open them ``plainly``.
    """

    def __init__(self, *refuses: str, writes: bool = True) -> None:
        self.asked: list[str] = []
        self._refuses = refuses
        self._writes = writes

    def open(self, instead: Path | None, entries: Mapping[str, str]) -> Any:
        wanted = "kept" if instead else "to keep" if entries else "plainly"
        self.asked.append(wanted)
        if wanted in self._refuses:
            raise DeviceError("onnxruntime:Mine", "not by this driver")
        if entries and self._writes:
            Path(entries["ep.context_file_path"]).write_bytes(b"compiled")
        return FUSED if instead else PLACED

    def __call__(self, folder: Path, key: Any = "key") -> Opened:
        self.asked.clear()
        return open_or_keep(str(folder), key, self.open, lambda session: session)


def test_the_second_opening_loads_what_the_first_kept(tmp_path: Path) -> None:
    opened = Compiler()
    assert opened(tmp_path).placed == PLACED
    assert opened.asked == ["to keep"]
    assert sorted(file.suffix for file in tmp_path.iterdir()) == [".json", ".onnx"]
    found = opened(tmp_path)
    assert opened.asked == ["kept"]
    assert (found.session, found.placed) == (FUSED, PLACED)  # as it was counted when compiled
    opened(tmp_path, "another key")
    assert opened.asked == ["to keep"]


@pytest.mark.parametrize("damage", [b"compiles", b"", None])
def test_a_damaged_file_is_never_loaded(damage: bytes | None, tmp_path: Path) -> None:
    opened = Compiler()
    opened(tmp_path)
    (kept,) = tmp_path.glob("*.onnx")
    if damage is None:
        kept.unlink()
    else:
        kept.write_bytes(damage)
    assert opened(tmp_path).session == PLACED
    assert opened.asked == ["to keep"]
    opened(tmp_path)
    assert opened.asked == ["kept"]  # made anew, and whole


def test_a_damaged_note_costs_a_compilation(tmp_path: Path) -> None:
    opened = Compiler()
    opened(tmp_path)
    (note,) = tmp_path.glob("*.json")
    note.write_bytes(b"{")
    opened(tmp_path)
    assert opened.asked == ["to keep"]


def test_what_is_whole_and_refused_is_kept_no_more(tmp_path: Path, caplog) -> None:
    Compiler()(tmp_path)
    opened = Compiler("kept")
    with caplog.at_level(logging.WARNING):
        assert opened(tmp_path).session == PLACED
    assert "compiled anew, and kept no more: onnxruntime:Mine: not by this driver" in caplog.text
    assert opened.asked == ["kept", "plainly"]
    opened(tmp_path)
    assert opened.asked == ["plainly"]


def test_a_file_of_which_the_provider_takes_less_is_not_used(tmp_path: Path) -> None:
    Compiler()(tmp_path)
    other = Compiler()
    other.open = lambda instead, _: Placement(1, 9, "nodes") if instead else PLACED
    assert other(tmp_path).session == PLACED


@pytest.mark.parametrize(
    ("compiler", "first"),
    [
        (Compiler("to keep"), ["to keep", "plainly"]),
        (Compiler(writes=False), ["to keep"]),
    ],
    ids=["refuses", "writes nothing"],
)
def test_a_provider_that_keeps_nothing_is_asked_once(
    compiler: Compiler, first: list[str], tmp_path: Path
) -> None:
    assert compiler(tmp_path).session == PLACED
    assert compiler.asked == first
    compiler(tmp_path)
    assert compiler.asked == ["plainly"]


def test_a_model_that_is_refused_at_all_is_refused(tmp_path: Path) -> None:
    opened = Compiler("to keep", "plainly")
    with pytest.raises(DeviceError, match="not by this driver"):
        opened(tmp_path)
    assert not list(tmp_path.iterdir())


def test_where_nothing_can_be_written_the_model_is_compiled(tmp_path: Path) -> None:
    opened = Compiler()
    assert opened(tmp_path / "missing").session == PLACED
    assert opened.asked == ["plainly"]


@pytest.mark.skipif(
    importlib.util.find_spec("onnxruntime_ep_openvino") is None,
    reason="a plug-in to try: pip install onnxruntime-ep-openvino",
)
def test_a_real_plugin_loads_what_it_compiled(tmp_path: Path) -> None:
    model = models.convolution(tmp_path / "m.onnx", [1, 3, 8, 8])
    cache = tmp_path / "cache"
    cache.mkdir()
    x = np.random.default_rng(1).normal(size=(1, 3, 8, 8)).astype(np.float32)

    def result(**asked: Any) -> tuple[np.ndarray, str]:
        settings = {"device": "OpenVINO.CPU", "cache_dir": str(cache), **asked}
        with models.session_of("onnxruntime", model, **settings) as session:
            return infer_once(session, {"x": x})["y"], session.device.placed

    first = result()
    (kept,) = cache.glob("context-*.onnx")
    blob = kept.read_bytes()
    second = result()
    np.testing.assert_array_equal(first[0], second[0])
    assert first[1] == second[1]
    assert kept.read_bytes() == blob
    kept.write_bytes(blob[:-100] + bytes(100))
    np.testing.assert_array_equal(first[0], result()[0])
    result(precision="device")
    assert len(list(cache.glob("context-*.onnx"))) == 2

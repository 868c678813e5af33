"""The folder of compiled models: bounded by use, and no reason to fail."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from edgert.models.compiled import compiled_folder, forget


def fill(root: Path, name: str, size: int, used_s: int) -> Path:
    folder = Path(compiled_folder(name, root))
    (folder / "blob").write_bytes(bytes(size))
    os.utime(folder, (used_s, used_s))
    return folder


def test_what_was_used_the_longest_time_ago_goes_first(tmp_path: Path) -> None:
    old, newer = fill(tmp_path, "old", 600, 1000), fill(tmp_path, "newer", 600, 2000)
    assert compiled_folder("now", tmp_path, max_bytes=1000) == str(tmp_path / "compiled" / "now")
    assert not old.exists()
    assert newer.is_dir()


def test_a_model_that_is_used_now_stays_however_large(tmp_path: Path) -> None:
    folder = fill(tmp_path, "large", 5000, 1000)
    assert compiled_folder("large", tmp_path, max_bytes=1000) == str(folder)
    assert (folder / "blob").is_file()


def test_where_no_folder_can_be_made_nothing_is_kept(tmp_path: Path) -> None:
    (tmp_path / "compiled").write_text("a file stands here")
    assert compiled_folder("now", tmp_path) == ""


def test_without_a_home_nothing_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("EDGERT_CACHE", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", "/proc/nowhere")
    assert compiled_folder("now") == ""


def test_forgetting_twice_is_no_fault(tmp_path: Path) -> None:
    folder = compiled_folder("now", tmp_path)
    forget(folder)
    forget(folder)
    assert not Path(folder).exists()

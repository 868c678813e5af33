"""Code beside a pipeline file runs only where its folder is allowed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from edgert.errors import UserError
from edgert.stages import code
from edgert.stages.registry import Registry

PIPELINE = """
version: 1
name: evil
stages:
  camera: {kind: "evil_stage:Camera"}
  out: {kind: sink.jsonl, inputs: {detections: camera.detections}}
"""
EVIL = """
from pathlib import Path
from edgert.stages.base import Source
Path("it-ran").write_text("")
class Camera(Source):
    outputs = {"detections": "detections"}
"""


def check(folder: Path, *options: str, **environment: str) -> str:
    (folder / "evil.yaml").write_text(PIPELINE)
    (folder / "evil_stage.py").write_text(EVIL)
    done = subprocess.run(
        [sys.executable, "-m", "edgert", "check", *options, "evil.yaml"],
        cwd=folder,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    return done.stderr


def test_a_module_beside_a_file_is_not_run(tmp_path: Path) -> None:
    said = check(tmp_path)
    assert "the module 'evil_stage' cannot be imported: No module named 'evil_stage'" in said
    assert not (tmp_path / "it-ran").exists()


@pytest.mark.parametrize(
    ("options", "environment"), [(["--allow-code", "."], {}), ([], {"EDGERT_CODE": "."})]
)
def test_a_folder_that_is_allowed(
    tmp_path: Path, options: list[str], environment: dict[str, str]
) -> None:
    assert "cannot be imported" not in check(tmp_path, *options, **environment)
    assert (tmp_path / "it-ran").exists()


def test_a_folder_that_everybody_can_write_to_is_refused(tmp_path: Path) -> None:
    tmp_path.chmod(0o777)
    with pytest.raises(UserError, match="can be written by everybody"):
        code.allow([str(tmp_path)], "EDGERT_CODE")


@pytest.mark.parametrize(("name", "said"), [("gone", "cannot be used"), ("file", "is no folder")])
def test_what_is_no_folder_is_refused(tmp_path: Path, name: str, said: str) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(UserError, match=said):
        code.allow([str(tmp_path / name)], "--allow-code")


def test_a_module_of_python_is_not_imported_for_its_effects() -> None:
    with pytest.raises(UserError, match="'antigravity' is Python's own"):
        Registry({}).stage_class("antigravity:Stage")

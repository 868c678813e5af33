"""Pipeline files made for a test, read and checked against the kinds of the corpus."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

CORPUS = Path(__file__).parents[2] / "corpus"
sys.path.insert(0, str(CORPUS))  # for ``kind: kinds:Camera``

SMALL = """\
version: 1
name: small
stages:
  camera:
    kind: test.camera
    uri: sample:bikes
  prepare:
    kind: test.scale
    inputs: {image: camera.image}
  count:
    kind: test.count
    inputs: {frames: prepare.tensor}
"""


@pytest.fixture(autouse=True)
def _no_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep variables of whoever runs the tests out of them."""
    monkeypatch.delenv("EDGERT_INPUT", raising=False)
    monkeypatch.delenv("EDGERT_OUTPUT", raising=False)


@pytest.fixture
def small() -> str:
    """The text of a pipeline of three stages."""
    return SMALL


@pytest.fixture
def write(tmp_path: Path) -> Callable[[str], Path]:
    """Write a text into ``p.yaml``."""

    def written(text: str) -> Path:
        file = tmp_path / "p.yaml"
        file.write_text(text, encoding="utf-8")
        return file

    return written

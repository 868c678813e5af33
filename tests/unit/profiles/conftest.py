"""Profiles and machines made for a test; the user's own profiles are kept out."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

Write = Callable[..., Path]

PROFILE = """\
version: 1
name: {name}
description: A board.
sources:
  manual: {{title: Manual, url: "https://example.com", version: "1", as_of: 2026-11-30}}
{rest}"""


@pytest.fixture(autouse=True)
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of the user's own profiles, empty."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    folder = tmp_path / "config" / "edgert" / "profiles"
    folder.mkdir(parents=True)
    return folder


@pytest.fixture
def write(own: Path) -> Write:
    """Write a profile of the user's own: ``write("board", "match: {...}")``."""

    def written(name: str, rest: str) -> Path:
        file = own / f"{name}.yaml"
        file.write_text(PROFILE.format(name=name, rest=rest), encoding="utf-8")
        return file

    return written

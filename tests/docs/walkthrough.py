"""Runs a walk-through: saves its files, runs its commands, as a reader would."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

_BLOCK = re.compile(r"<!-- (file: (?P<file>\S+)|run) -->\n```\w+\n(?P<text>.*?)```\n", re.DOTALL)
ROOT = Path(__file__).parents[2]


def blocks(page: str) -> list[tuple[str, str]]:
    """Return what is to be followed in ``docs/PAGE``: a file's name, or none, and a text."""
    text = (ROOT / "docs" / page).read_text()
    return [(block["file"] or "", block["text"]) for block in _BLOCK.finditer(text)]


def follow(
    page: str, folder: Path, timeout_s: float = 120
) -> list[subprocess.CompletedProcess[str]]:
    """Follow ``docs/PAGE`` in an empty folder; return what its commands did."""
    done = []
    for file, text in blocks(page):
        if file:
            (folder / file).write_text(text)
            continue
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        environment = {**os.environ, "PATH": path, "PYTEST_ADDOPTS": ""}
        done.append(
            subprocess.run(
                ["bash", "-c", text],
                cwd=folder,
                env=environment,
                capture_output=True,
                text=True,
                timeout=timeout_s,
                check=False,
            )
        )
    return done

"""Runs a walk-through: saves its files, runs its commands, as a reader would."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

_BLOCK = re.compile(r"<!-- (file: (?P<file>\S+)|run) -->\n```\w+\n(?P<text>.*?)```\n", re.DOTALL)
ROOT = Path(__file__).parents[2]


def follow(
    page: str, folder: Path, timeout_s: float = 120
) -> list[subprocess.CompletedProcess[str]]:
    """Follow ``docs/PAGE`` in an empty folder; return what its commands did."""
    text = (ROOT / "docs" / page).read_text()
    done = []
    for block in _BLOCK.finditer(text):
        if block["file"]:
            (folder / block["file"]).write_text(block["text"])
            continue
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        environment = {**os.environ, "PATH": path, "PYTEST_ADDOPTS": ""}
        done.append(
            subprocess.run(
                ["bash", "-c", block["text"]],
                cwd=folder,
                env=environment,
                capture_output=True,
                text=True,
                timeout=timeout_s,
                check=False,
            )
        )
    return done

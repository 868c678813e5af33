"""Vendors' tools in environments of their own: made on request, never behind the user's back.

CACHE/coverage/environments/NAME-VERSION/    a virtual environment, there whole or not at all
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import msgspec

from edgert.errors import RunError, UserError
from edgert.models.cache import cache_root

_WITHIN_S = 1800.0


class Environment(msgspec.Struct, frozen=True, kw_only=True):
    """What an adapter needs that must not, or cannot, live beside edgert.

    Attributes:
        name: Of the adapter.
        version: Of the tool, part of the folder's name.
        packages: What pip installs.
        licence: Of the tool, as its own files say.
        what: What it is.
        size_mb: What it takes on disk, about.
        most_python: Newest Python it is made for.
    """

    name: str
    version: str
    packages: tuple[str, ...]
    licence: str
    what: str
    size_mb: int
    most_python: tuple[int, int] = (3, 13)

    @property
    def folder(self) -> Path:
        """Where it lives."""
        return cache_root() / "coverage" / "environments" / f"{self.name}-{self.version}"

    @property
    def is_made(self) -> bool:
        """Whether it is there whole."""
        return self.python.exists() and not self.unfinished.exists()

    @property
    def unfinished(self) -> Path:
        """A mark that stands while it is being made."""
        return self.folder.with_name(f".{self.folder.name}.unfinished")

    @property
    def python(self) -> Path:
        """Its interpreter."""
        return self.folder / "bin" / "python"


_CHILD = ("msgspec>=0.19", "numpy>=1.26", "ml_dtypes>=0.5")
"""What edgert's side of the child imports there (``coverage/child.py``)."""

ENVIRONMENTS = {
    each.name: each
    for each in (
        Environment(
            name="qnn",
            version="2.7.0",
            packages=("onnxruntime-qnn==2.7.0", "onnx>=1.17", *_CHILD),
            licence="MIT for the provider; Qualcomm's own terms for the QNN libraries inside",
            what="Qualcomm's HTP emulator behind ONNX Runtime (x86-64 Linux)",
            size_mb=550,
        ),
        Environment(
            name="rknn",
            version="2.5.0",
            packages=("rknn-toolkit2==2.5.0", *_CHILD),
            licence="none in the package, so Rockchip's to say; PyTorch (BSD-3-Clause) beside it",
            what="Rockchip's NPU compiler and simulator (x86-64 Linux)",
            size_mb=5700,
            most_python=(3, 12),
        ),
        Environment(
            name="vela",
            version="5.2.0",
            packages=("ethos-u-vela==5.2.0", *_CHILD),
            licence="Apache-2.0",
            what="Arm's compiler for Ethos-U55, U65 and U85",
            size_mb=110,
        ),
    )
}


def find(name: str) -> Environment:
    """Return an environment that has been made.

    Raises:
        UserError: It has not.
    """
    environment = ENVIRONMENTS[name]
    if not environment.is_made:
        fault = f"{environment.what} is not set up"
        raise UserError(f"adapter {name}", fault, f"Run: edgert coverage setup {name}")
    return environment


def make(environment: Environment, on_line: Callable[[str], None]) -> None:
    """Make an environment.

    Args:
        environment: What is to be made.
        on_line: Told what goes on.

    Raises:
        UserError: This Python is too new for it.
        RunError: pip could not install it.
    """
    if sys.version_info[:2] > environment.most_python:
        newest = ".".join(map(str, environment.most_python))
        fault = f"needs Python {newest} or older, this is {sys.version.split()[0]}"
        raise UserError(f"adapter {environment.name}", fault, "Run edgert in an older Python")
    target = environment.folder
    target.parent.mkdir(parents=True, exist_ok=True)
    # An environment knows its own path, so it is made where it stays and marked last.
    environment.unfinished.touch()
    shutil.rmtree(target, ignore_errors=True)
    try:
        on_line(f"making {environment.name} {environment.version}")
        _run([sys.executable, "-m", "venv", str(target)], environment)
        on_line(f"installing {', '.join(environment.packages)}")
        pip = [str(environment.python), "-m", "pip", "--disable-pip-version-check", "-q"]
        _run([*pip, "install", *environment.packages], environment)
    except BaseException:
        shutil.rmtree(target, ignore_errors=True)
        environment.unfinished.unlink(missing_ok=True)
        raise
    environment.unfinished.unlink()


def _run(command: list[str], environment: Environment) -> None:
    with tempfile.TemporaryFile() as said:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            stdout=said,
            stderr=said,
            timeout=_WITHIN_S,
            check=False,
        )
        if done.returncode:
            said.seek(0)
            lines = said.read().decode(errors="replace").strip().splitlines()
            why = next((line for line in reversed(lines) if "rror" in line), "no reason given")
            mend = "Mend what pip says, and run it again"
            raise RunError(f"adapter {environment.name}", f"pip failed: {why.strip()}", mend)

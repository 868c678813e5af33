"""Fetch a wheel with the user's own pip, under the user's own settings."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from edgert.errors import ModelError

_EXCEPTION = "ERROR: Exception:"
TIMEOUT_S = 1800.0


def fetch_wheel(
    package: str, version: str, into: Path, place: str, mend: str, options: Sequence[str] = ()
) -> Path:
    """Download one wheel, without its dependencies, into an empty folder.

    Args:
        package: Name of the package.
        version: Its version.
        into: An empty folder.
        place: With which an error begins.
        mend: What to do where pip cannot.
        options: Further options of ``pip download``: for which machine the wheel is.

    Raises:
        ModelError: There is no pip, or it cannot get the wheel; its last line says why.
    """
    if importlib.util.find_spec("pip") is None:
        raise ModelError(place, f"needs pip, which '{sys.executable}' does not have", mend)
    status, said = _run_pip([*options, "--dest", str(into), f"{package}=={version}"])
    wheels = list(into.glob("*.whl"))
    if status != 0 or len(wheels) != 1:
        raise ModelError(place, f"pip cannot download {package}=={version}: {said}", mend)
    return wheels[0]


def _run_pip(arguments: list[str]) -> tuple[int, str]:
    """Run ``pip download``; return its exit status and its last error, or last line."""
    command = [
        # -P: a file of the working directory must not stand in for pip.
        *(sys.executable, "-P", "-m", "pip", "download"),
        *("--no-deps", "--only-binary=:all:", "--no-input", "--disable-pip-version-check"),
        *arguments,
    ]
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=TIMEOUT_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return 1, f"it did not finish within {TIMEOUT_S:g} s"
    lines = done.stdout.decode(errors="replace").strip().splitlines()
    # An exception of pip's own is told by the last line of its traceback, not by its headline.
    said = [line for line in lines if line.startswith("ERROR") and line != _EXCEPTION] or lines
    return done.returncode, said[-1].strip() if said else f"exit code {done.returncode}"

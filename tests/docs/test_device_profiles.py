"""The profile of docs/device-profiles.md has no fault, and a wheel carries those of edgert."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from edgert.profiles.load import load_profile

REPOSITORY = Path(__file__).parents[2]
PAGE = REPOSITORY / "docs" / "device-profiles.md"


def test_the_example_has_no_fault(tmp_path: Path) -> None:
    found = re.search(r"^```yaml file=(\S+)\n(.*?)^```$", PAGE.read_text(), re.M | re.S)
    assert found
    file = tmp_path / found[1]
    file.write_text(found[2])
    spec = load_profile(file).spec
    assert spec.cores
    assert spec.cores.by_class() == {"p-cores": (4, 5, 6, 7), "e-cores": (0, 1, 2, 3)}


@pytest.mark.slow
def test_a_wheel_has_the_profiles_and_finds_them(tmp_path: Path) -> None:
    tree, out = tmp_path / "tree", tmp_path / "out"
    for name in ("edgert", "device_profiles"):
        shutil.copytree(
            REPOSITORY / name,
            tree / name,
            symlinks=True,
            ignore=shutil.ignore_patterns("__pycache__"),
        )
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(REPOSITORY / name, tree)
    command = [sys.executable, "-m", "pip", "wheel", "--no-deps", str(tree), "-w", str(out)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    if done.returncode and "No matching distribution" in done.stderr + done.stdout:
        pytest.skip("setuptools cannot be had here")
    assert done.returncode == 0, done.stderr
    with zipfile.ZipFile(next(out.glob("*.whl"))) as wheel:
        wheel.extractall(tmp_path / "installed")
    shutil.rmtree(tree)
    shipped = tmp_path / "installed" / "edgert" / "profiles" / "shipped"
    names = sorted(file.name for file in (REPOSITORY / "device_profiles").glob("*.yaml"))
    assert sorted(file.name for file in shipped.iterdir()) == names
    listing = [sys.executable, "-c", LISTING]
    done = subprocess.run(
        listing, cwd=tmp_path / "installed", capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout.split() == [name.removesuffix(".yaml") for name in names]


LISTING = """
from edgert.profiles.choose import load_all
from edgert.profiles.find import SHIPPED
assert str(SHIPPED).startswith(__import__("os").getcwd())
print(*sorted(profile.name for profile in load_all()))
"""

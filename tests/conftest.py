"""Fixtures of every test: where assets and models are, and the command line in a real process."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from edgert.errors import UserError
from edgert.models.cache import Cache
from edgert.models.pull import find_item, pull

REPOSITORY = Path(__file__).parent.parent


def pytest_configure(config: pytest.Config) -> None:
    """Share one cache of models among all tests and runs, apart from the user's own.

    ``EDGERT_CACHE``, where it is set, is taken as it is.
    """
    cache = getattr(config, "cache", None)  # absent under ``-p no:cacheprovider``
    if cache is not None:
        os.environ.setdefault("EDGERT_CACHE", str(cache.mkdir("edgert")))


# Tests that run pipelines share what a user has once, the names of runs: they stay in one process
# and in order, and so do those that share a booted systemd. All others run beside them.
GROUPS = {
    "process": "runs",
    "docs": "runs",
    "unit/cli": "runs",
    "unit/runtime": "runs",
    "unit/bench": "runs",
    "service": "service",
}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Keep together, for ``--dist loadgroup``, what must not run side by side."""
    tests = Path(__file__).parent
    for item in items:
        for folder, group in GROUPS.items():
            if item.path.is_relative_to(tests / folder):
                item.add_marker(pytest.mark.xdist_group(group))


@pytest.fixture(scope="session")
def assets() -> Path:
    """The folder of models and media that the project does not carry."""
    named = os.environ.get("EDGERT_TEST_ASSETS")
    folder = Path(named) if named else REPOSITORY.parent / "shared" / "assets"
    if not folder.is_dir():
        pytest.skip(f"no test assets at {folder}: set EDGERT_TEST_ASSETS")
    return folder


@pytest.fixture(scope="session")
def vtest(assets: Path) -> Path:
    """A video of 795 frames, 768x576, 10 fps."""
    return _asset(assets / "media" / "vtest.avi")


@pytest.fixture(scope="session")
def yolox_onnx(assets: Path) -> Path:
    """YOLOX-nano, f32 [1,3,416,416] -> [1,3549,85]."""
    return _asset(assets / "models" / "yolox_nano.onnx")


@pytest.fixture(scope="session")
def pulled() -> Callable[[str], Path]:
    """Return the file of a model or sample of the catalog; skip where it cannot be had."""

    def fetch(name: str) -> Path:
        try:
            return pull(find_item(name), Cache())
        except UserError as error:
            pytest.skip(f"{name} cannot be pulled here: {error}")

    return fetch


def _asset(file: Path) -> Path:
    if not file.is_file():
        pytest.skip(f"no test asset {file}")
    return file


Edgert = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="session")
def edgert() -> Edgert:
    """Run the command line in a process of its own: ``edgert("check", file, timeout=10)``."""

    def run(*arguments: str | Path, **options: object) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "edgert", *map(str, arguments)]
        keywords = {"capture_output": True, "text": True, "timeout": 60, **options}
        return subprocess.run(command, check=False, **keywords)

    return run

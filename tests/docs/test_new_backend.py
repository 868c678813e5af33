"""Runs docs/new-backend.md: its module, its entry point, its script, in a pipeline's stage."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tests import models

PAGE = Path(__file__).parent.parent.parent / "docs" / "new-backend.md"

RUN_STAGE = """
import sys
from pathlib import Path
import numpy as np
from edgert.models.reader import Models
from edgert.stages.base import PlanContext
from edgert.stages.harness import opened
from edgert.stages.infer import Infer
from edgert.tensor import PortSpec, TensorSpec

folder = Path(sys.argv[1])
context = PlanContext("detector", "stage 'detector'", str(folder), Models(folder), {})
port = PortSpec("tensors", {"x": TensorSpec("f32", (2, 3))})
settings = {"model": "m.onnx", "device": ["opencv:NPU", "opencv:CPU"]}
with opened(Infer, settings, {"tensor": port}, context) as run:
    sample = run.feed({"tensor": {"x": np.ones((2, 3), np.float32)}})["outputs"]
    print(sample.tensors["y"].sum(), run.stage.context.report["device"]["actual"])
print(run.stage.context.copied_bytes)
"""


def blocks() -> dict[str, str]:
    return dict(re.findall(r"^```\w+ title=(\S+)\n(.*?)^```$", PAGE.read_text(), re.M | re.S))


def printed() -> str:
    return re.search(r"^```text\n(.*?)^```$", PAGE.read_text(), re.M | re.S)[1]


@pytest.fixture
def installed(tmp_path: Path) -> Path:
    """A folder as an installer would leave it, with the page's package in it."""
    pytest.importorskip("openvino")
    page = blocks()
    for name in ("opencv_backend.py", "try_it.py"):
        (tmp_path / name).write_text(page[name])
    project = tomllib.loads(page["pyproject.toml"])["project"]
    metadata = tmp_path / f"edgert_opencv-{project['version']}.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text(
        f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n"
    )
    (group,) = project["entry-points"].items()
    lines = [f"[{group[0]}]", *(f"{name} = {value}" for name, value in group[1].items())]
    (metadata / "entry_points.txt").write_text("\n".join(lines))
    models.doubling(tmp_path / "m.onnx")
    return tmp_path


def run(folder: Path, *arguments: str) -> str:
    command = [sys.executable, *arguments]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_its_module_alone_is_packaged() -> None:
    """Beside `try_it.py`, setuptools guesses nothing and refuses to build."""
    project = tomllib.loads(blocks()["pyproject.toml"])
    (entry,) = project["project"]["entry-points"]["edgert.backends"].values()
    assert project["tool"]["setuptools"]["py-modules"] == [entry.partition(":")[0]]


def test_the_script_prints_what_the_page_says(installed: Path) -> None:
    assert run(installed, "try_it.py", "m.onnx") == printed()


def test_the_backend_serves_the_stage_of_a_pipeline(installed: Path) -> None:
    assert run(installed, "-c", RUN_STAGE, str(installed)) == "12.0 opencv:CPU\n48\n"

"""What no module of the project may do: run what came through a socket or out of a file."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from edgert.errors import ModelError, UserError
from edgert.models.formats import format_of
from edgert.stages.base import PlanContext
from edgert.stages.postprocess.described import read_lines

REPOSITORY = Path(__file__).parents[2]
FILES = [
    *(REPOSITORY / "edgert").rglob("*.py"),
    *(file for file in (REPOSITORY / "tools").iterdir() if file.is_file()),
]
# Each of them runs code that its input names, or sends Python objects in a form that does.
RUNS_ITS_INPUT = {
    "pickle", "cPickle", "_pickle", "dill", "cloudpickle", "joblib", "marshal", "shelve",
    "multiprocessing", "concurrent.futures.process", "torch",
}  # fmt: skip
CALLS = {"eval", "exec", "send_pyobj", "recv_pyobj", "unsafe_load", "full_load", "os.system"}


def imports(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module


def calls(tree: ast.AST) -> Iterator[tuple[str, ast.Call]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            name = node.func.attr if isinstance(node.func, ast.Attribute) else ""
            yield (node.func.id if isinstance(node.func, ast.Name) else name), node


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(REPOSITORY)))
def test_nothing_runs_its_input(file: Path) -> None:
    tree = ast.parse(file.read_text(encoding="utf-8"))
    wrong = {name for name in imports(tree) if name in RUNS_ITS_INPUT}
    for name, call in calls(tree):
        keywords = {word.arg: ast.unparse(word.value) for word in call.keywords}
        if name in CALLS or keywords.get("allow_pickle") == "True":
            wrong.add(ast.unparse(call))
        if keywords.get("shell", "False") != "False":
            wrong.add(ast.unparse(call))
    assert not wrong


def check(file: Path) -> tuple[int, str]:
    done = subprocess.run(
        [sys.executable, "-m", "edgert", "check", str(file)],
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    return done.returncode, done.stderr


def test_a_pipe_as_pipeline_file_is_refused_at_once(tmp_path: Path) -> None:
    file = tmp_path / "p.yaml"
    os.mkfifo(file)
    said = "it cannot be read: it is a pipe or a device. Write the pipeline to a file."
    assert check(file) == (2, f"{file}: the file: {said}\n")


def test_a_device_without_end_as_pipeline_file_is_refused() -> None:
    code, said = check(Path("/dev/zero"))
    assert (code, "it is a pipe or a device" in said) == (2, True)


def test_a_huge_file_is_read_no_further_than_the_limit(tmp_path: Path) -> None:
    file = tmp_path / "p.yaml"
    with file.open("wb") as opened:
        opened.truncate(1 << 40)  # sparse: a TiB
    assert check(file) == (
        2,
        f"{file}: the file: it is larger than 1048576 bytes. Make it smaller.\n",
    )


def test_a_pipe_as_model_is_refused_at_once(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.onnx")
    with pytest.raises(ModelError, match="it is a pipe or a device"):
        format_of(tmp_path / "pipe.onnx", "model")


def test_a_device_without_end_as_labels_is_refused() -> None:
    context = PlanContext("out", "stage 'out'", ".", models=None, stages={})  # type: ignore[arg-type]
    with pytest.raises(UserError, match="it is a pipe or a device"):
        read_lines("/dev/zero", "labels", context)

"""Models of several files: read and run by OpenVINO, and another model when one file changes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from edgert.errors import ModelError
from edgert.models.cache import Cache
from edgert.models.inspect import inspect
from edgert.models.reader import Models
from edgert.stages.base import PlanContext
from edgert.stages.harness import opened
from edgert.stages.infer import Infer
from edgert.tensor import PortSpec, TensorSpec
from tests.saved_models import doubling_saved_model, weighing_paddle

pytest.importorskip("openvino", reason="needs the extra 'openvino'")

SHAPES = {"x": [2, 3]}
X = np.array([[1, 2, 3], [-4, 5, 6]], np.float32)


@pytest.fixture
def models(tmp_path: Path) -> Models:
    return Models(tmp_path, cache=Cache(tmp_path / "cache"))


def result_of(model: str, models: Models, folder: Path) -> np.ndarray:
    context = PlanContext("net", "stage 'net'", str(folder), models, {})
    port = PortSpec("tensors", {"x": TensorSpec("f32", (2, 3))})
    settings = {"model": model, "shape": SHAPES, "device": "openvino:CPU"}
    with opened(Infer, settings, {"tensor": port}, context) as run:
        return run.feed({"tensor": {"x": X}})["outputs"].tensors["y"].copy()


def test_a_saved_model_by_its_folder_or_its_graph(models: Models, tmp_path: Path) -> None:
    doubling_saved_model(tmp_path / "net")
    described = [models.describe(name, SHAPES) for name in ("./net", "net/saved_model.pb")]
    assert {one.format for one in described} == {"saved-model"}
    assert {one.path for one in described} == {str(tmp_path / "net")}
    assert described[0].outputs == {"y": TensorSpec("f32", (2, 3))}
    assert models.describe("net", {}).inputs == {"x": TensorSpec("f32", (None, 3))}
    np.testing.assert_array_equal(result_of("net", models, tmp_path), X + X)


def test_a_paddle_model_and_its_weights(models: Models, tmp_path: Path) -> None:
    weighing_paddle(tmp_path / "net.pdmodel")
    described = models.describe("net.pdmodel", {})
    assert (described.format, described.inputs) == ("paddle", {"x": TensorSpec("f32", (2, 3))})
    np.testing.assert_array_equal(result_of("net.pdmodel", models, tmp_path), X * (1, 2, 3))
    weighing_paddle(tmp_path / "net.pdmodel", (1, 0, 2))
    models.forget()
    assert models.describe("net.pdmodel", {}).sha256 != described.sha256
    np.testing.assert_array_equal(result_of("net.pdmodel", models, tmp_path), X * (1, 0, 2))


def test_new_variables_make_another_model(models: Models, tmp_path: Path) -> None:
    folder = doubling_saved_model(tmp_path / "net")
    before = models.locate("net", pull=False).sha256
    (folder / "notes.txt").write_text("no part of the model")
    assert models.locate("net", pull=False).sha256 == before
    (folder / "variables").mkdir()
    (folder / "variables" / "variables.index").write_bytes(b"new")
    assert models.locate("net", pull=False).sha256 != before


@pytest.mark.parametrize(
    ("make", "name", "operators"),
    [
        (doubling_saved_model, "net", {"Add": 1}),
        (weighing_paddle, "net.pdmodel", {"Multiply": 1}),
    ],
)
def test_inspect_takes_them_apart(
    make: Callable[[Path], Path], name: str, operators: dict[str, int], models: Models, tmp_path
) -> None:
    make(tmp_path / name)
    report = inspect(models.locate(name, pull=False), {})
    assert report.operators == operators
    assert report.size_bytes == sum(
        file.stat().st_size
        for file in tmp_path.rglob("*")
        if file.suffix in {".pb", ".pdmodel", ".pdiparams"}
    )


@pytest.mark.parametrize("name", ["net", "net.pdmodel"])
def test_what_is_damaged_is_told_by_a_child(name: str, models: Models, tmp_path: Path) -> None:
    graph = tmp_path / name
    if name == "net":
        graph.mkdir()
        graph /= "saved_model.pb"
    graph.write_bytes(b"\x0a\xff\xff" * 30 if name != "net" else b"\x08\x01\x12\xff" * 30)
    with pytest.raises(ModelError, match=rf"model '{name}': OpenVINO cannot read it: "):
        models.describe(name, SHAPES)


def test_missing_weights_are_told(models: Models, tmp_path: Path) -> None:
    weighing_paddle(tmp_path / "net.pdmodel").with_suffix(".pdiparams").unlink()
    with pytest.raises(ModelError, match="OpenVINO cannot read it: "):
        models.describe("net.pdmodel", {})

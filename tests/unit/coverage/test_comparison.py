"""Two devices, one with a fault in the middle: it is named, and cut out to be passed on."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnxruntime as ort
import pytest
from onnx import helper, numpy_helper

from edgert.coverage.comparison.inputs import Pictures
from edgert.coverage.comparison.record import Comparison
from edgert.coverage.comparison.report import FORMATS
from edgert.coverage.comparison.run import CompareRun, compare_model
from edgert.coverage.protocol import Spec
from edgert.models.cache import Cache
from edgert.models.catalog import load_catalog
from edgert.models.locate import Locator
from tests import models

HERE = Path(__file__).parent
REFERENCE = Spec(target="edgert.coverage.adapters.onnxruntime:OnnxRuntimeAdapter", device="CPU")


@pytest.fixture(scope="module")
def network(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a chain with a swish, a Relu in the middle, and a way around both."""
    k = numpy_helper.from_array(np.array(0.25, np.float32))
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["c"], name="conv", pads=[1, 1, 1, 1]),
        helper.make_node("Abs", ["c"], ["around"], name="abs"),
        helper.make_node("Sigmoid", ["c"], ["s"], name="sigmoid"),
        helper.make_node("Constant", [], ["k"], name="k", value=k),
        helper.make_node("Mul", ["c", "s"], ["m"], name="mul"),
        helper.make_node("Relu", ["m"], ["r"], name="relu"),
        helper.make_node("Add", ["r", "k"], ["a"], name="add"),
        helper.make_node("Sub", ["a", "around"], ["y"], name="sub"),
    ]
    weights = {"w": np.linspace(-1, 1, 108, dtype=np.float32).reshape(4, 3, 3, 3)}
    x, y = models.value("x", (1, 3, 8, 8)), models.value("y", (1, 4, 8, 8))
    return models.save(tmp_path_factory.mktemp("m") / "swish.onnx", nodes, [x], [y], weights)


def compared(path: Path, fault: str, folder: Path) -> Comparison:
    model = Locator(load_catalog(), Cache(), folder).locate(str(path), None)
    run = CompareRun(
        model=model,
        reference=("onnxruntime:CPU", REFERENCE),
        candidate=(f"faulty:{fault}", Spec(target="faulty:Faulty", device=fault)),
        pictures=Pictures(str(path), {}, {}, 100),
        output=folder / "out",
    )
    return compare_model(run)


@pytest.fixture(autouse=True)
def _adapters(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(HERE))


def is_saved_to_run_without_edgert(out: Path) -> None:
    assert sorted(file.name for file in out.iterdir()) == [
        "README.txt", "expected.npz", "inputs.npz", "model.onnx",
    ]  # fmt: skip
    session = ort.InferenceSession(out / "model.onnx", providers=["CPUExecutionProvider"])
    given = session.run(None, dict(np.load(out / "inputs.npz")))
    expected = np.load(out / "expected.npz")
    assert [value.name for value in session.get_outputs()] == expected.files == ["r"]
    np.testing.assert_array_equal(given[0], expected["r"])
    said = (out / "README.txt").read_text()
    assert "--reference onnxruntime:CPU --candidate faulty:Relu" in said
    assert f"onnxruntime {ort.__version__}" in said


def test_a_wrong_operator_is_named_and_cut_out(network: Path, tmp_path: Path) -> None:
    found = compared(network, "Relu", tmp_path)
    assert (found.numerics, found.candidate.evidence) == ("differs", "emulated")
    assert found.layers is not None
    assert (found.layers.first, found.layers.outputs) == ("r", "differs")
    beyond = [layer.node for layer in found.layers.layers if layer.figures.numerics == "differs"]
    assert beyond == ["relu", "add", "sub"]
    assert set(found.layers.worst) == {"r", "a", "y"}
    assert found.bisected is not None
    assert (found.bisected.nodes, found.bisected.operators) == (["relu"], ["Relu"])
    assert found.bisected.proved
    is_saved_to_run_without_edgert(tmp_path / "out")
    for text in (FORMATS[".html"](found), FORMATS[".md"](found)):
        assert "Relu" in text
        assert "saved in" in text


def test_a_fault_of_two_nodes_together_is_found_by_halving(network: Path, tmp_path: Path) -> None:
    found = compared(network, "Sigmoid+Mul", tmp_path)
    assert found.layers is not None
    assert found.layers.first == "m"
    assert found.bisected is not None
    assert (found.bisected.nodes, found.bisected.proved) == (["sigmoid", "mul"], True)


def test_a_fault_that_is_gone_where_it_is_looked_at_is_said_and_still_cut_out(
    network: Path, tmp_path: Path
) -> None:
    found = compared(network, "Sigmoid*Mul", tmp_path)
    assert found.layers is not None
    assert (found.numerics, found.layers.first, found.layers.outputs) == ("differs", "", "equal")
    assert "the fault depends on what the compiler fuses" in found.notes[-1]
    assert found.bisected is not None
    assert (found.bisected.nodes, found.bisected.proved) == (["sigmoid", "mul"], True)


def test_a_crash_is_cut_out_like_any_fault(network: Path, tmp_path: Path) -> None:
    found = compared(network, "abort:Relu", tmp_path)
    assert (found.numerics, found.outputs) == ("crashed", [])
    assert found.bisected is not None
    assert (found.bisected.nodes, found.bisected.fault) == (["relu"], "crashed")
    assert found.bisected.proved
    assert "SIGABRT" in found.bisected.reason


def test_a_fault_that_no_cut_shows_is_said_beside_what_was_found(
    network: Path, tmp_path: Path
) -> None:
    found = compared(network, "whole:Relu", tmp_path)
    assert (found.numerics, found.bisected) == ("differs", None)
    assert "do not show what the whole does (differs)" in found.notes[-1]
    assert not (tmp_path / "out").exists()

"""``edgert coverage --suite tflite`` on real runtimes, and on devices that are not there."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from ai_edge_litert import schema_py_generated as schema

from edgert.coverage.suites.tflite.cases import REVISION
from edgert.coverage.suites.tflite.file import Model
from tests import tflite_models

Edgert = Callable[..., subprocess.CompletedProcess[str]]
SUITE = ("coverage", "--suite", "tflite")


@pytest.fixture(scope="module", autouse=True)
def places(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """One cache for all: making the suite takes a second or two."""
    folder = tmp_path_factory.mktemp("coverage")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("EDGERT_CACHE", str(folder / "cache"))
        patch.setenv("XDG_STATE_HOME", str(folder / "state"))
        yield


def report_of(done: subprocess.CompletedProcess[str]) -> Any:
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize("device", ["tflite:CPU", "openvino:CPU"])
def test_every_type_of_an_operator_is_equal_on_the_device(device: str, edgert: Edgert) -> None:
    report = report_of(edgert(*SUITE, "--device", device, "--only", "SOFTMAX,TANH", "--json"))
    assert report["versions"]["suite"] == f"tflite {REVISION}"
    assert report["versions"]["reference"] == "formulas in f64"
    cases = report["cases"]
    assert {case["operator"] for case in cases} == {"SOFTMAX", "TANH"}
    assert {case["dtype"] for case in cases} == {"f32", "i8", "u8", "i16"}
    assert {case["form"] for case in cases} == {"tflite"}
    assert {(case["placement"], case["numerics"]) for case in cases} == {("device", "equal")}
    assert {case["evidence"] for case in cases} == {"hardware"}


def test_what_xnnpack_does_not_take_is_not_said_to_be_its_own(edgert: Edgert) -> None:
    asked = ("--device", "tflite:XNNPACK", "--only", "FULLY_CONNECTED,CUMSUM")
    reports = [report_of(edgert(*SUITE, *asked, "--json")) for _ in range(2)]
    where = {case["case"]: case["placement"] for case in reports[0]["cases"]}
    assert where["fully_connected_plain_f32"] == where["fully_connected_plain_i8"] == "device"
    assert where["cumsum_plain_f32"] == "cpu"
    for report in reports:
        for case in report["cases"]:
            assert case.pop("latency_ms") > 0
    assert reports[0] == reports[1]


def test_an_emulated_device_that_is_off_by_more_than_a_level_differs(edgert: Edgert) -> None:
    asked = ("--device", "emulated:NPU", "--only", "SOFTMAX", "--json")
    exact = report_of(edgert(*SUITE, *asked))["cases"]
    assert {(case["evidence"], case["numerics"]) for case in exact} == {("emulated", "equal")}
    noisy = report_of(edgert(*SUITE, *asked, "--option", "faults.noise=0.2"))["cases"]
    assert "differs" in {case["numerics"] for case in noisy if case["dtype"] == "f32"}


def test_a_list_says_what_it_lists(edgert: Edgert) -> None:
    asked = ("--device", "profile:imx93", "--only", "TANH,CUMSUM", "--json")
    cases = report_of(edgert(*SUITE, *asked))["cases"]
    where = {case["operator"]: case["placement"] for case in cases}
    assert where == {"TANH": "device", "CUMSUM": "cpu"}
    assert {case["evidence"] for case in cases} == {"static-list"}
    assert {case["reason"] for case in cases if case["operator"] == "CUMSUM"} != {""}


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (
            ("--device", "onnxruntime:CPU"),
            "device onnxruntime:CPU: it takes no tflite files, only onnx. Ask one that does: "
            "tflite:CPU, tflite:XNNPACK, openvino:CPU, vela:ethos-u65-256.\n",
        ),
        (
            ("--device", "tflite:CPU", "--only", "Conv"),
            "--only: the suite has no operator Conv. Names as in TFLite: CONV_2D, ",
        ),
        (
            ("--device", "tflite:CPU", "--forms", "frozen"),
            "--forms: the cases of --suite tflite have no forms. Leave it out.\n",
        ),
        (("--device", "tflite:NPU"), "device tflite:NPU: there is no such delegate. "),
    ],
)
def test_what_cannot_be_asked_is_said_in_a_line(
    arguments: tuple[str, ...], said: str, edgert: Edgert
) -> None:
    done = edgert(*SUITE, *arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(said)
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize("device", ["tflite:CPU", "openvino:CPU"])
def test_a_models_share_is_told_by_multiplications_too(
    device: str, tmp_path: Path, edgert: Edgert
) -> None:
    path = tflite_models.convolution(tmp_path / "conv.tflite", (1, 3, 6, 5))
    model = report_of(edgert("coverage", path, "--device", device, "--json"))["models"][0]
    counted = {node["operator"]: node["macs"] for node in model["nodes"]}
    assert counted == {"TRANSPOSE": 0, "CONV_2D": 6 * 5 * 4 * 27, "RESHAPE": 0}
    assert (model["share_of_nodes"], model["share_of_macs"]) == (1.0, 1.0)


def test_what_crosses_is_told_by_its_name(tmp_path: Path, edgert: Edgert) -> None:
    """XNNPACK takes both additions, and not the sum between them."""
    model = Model()
    g = model.graph
    x = g.input("x", [4])
    there = g.add("ADD", [x, x], g.tensor([4], name="there"), schema.AddOptionsT())
    axis = g.constant(np.int32(0))
    back = g.add("CUMSUM", [there, axis], g.tensor([4], name="back"), schema.CumsumOptionsT())
    g.output(g.add("ADD", [back, back], g.tensor([4], name="y"), schema.AddOptionsT()))
    path = model.save(tmp_path / "there-and-back.tflite")
    found = report_of(edgert("coverage", path, "--device", "tflite:XNNPACK", "--json"))
    assert found["models"][0]["crossings"] == [
        {"tensor": "there", "to": "cpu", "size_bytes": 16},
        {"tensor": "back", "to": "device", "size_bytes": 16},
    ]

"""``edgert coverage MODEL``: whole models, real runtimes, bad files beside good ones."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import onnx
import pytest
from onnx import TensorProto, helper

from tests import models, tflite_models
from tests.process.runs import descendants, is_gone, wait_for

EDGERT = [sys.executable, "-m", "edgert", "coverage"]


def cover(tmp_path: Path, *arguments: str) -> tuple[subprocess.CompletedProcess[str], Any]:
    report = tmp_path / "report.json"
    done = subprocess.run(
        [*EDGERT, *arguments, "--report", str(report)],
        check=False,
        capture_output=True,
        text=True,
        env=os.environ | {"EDGERT_CACHE": str(tmp_path / "cache")},
        timeout=120,
    )
    return done, json.loads(report.read_text()) if report.exists() else None


@pytest.mark.parametrize("device", ["onnxruntime:CPU", "openvino:CPU"])
def test_a_model_is_wholly_there_and_agrees_with_the_other_runtime(
    device: str, tmp_path: Path
) -> None:
    model = models.convolution(tmp_path / "conv.onnx", (1, 3, 8, 8))
    done, report = cover(tmp_path, str(model), "--device", device)
    assert (done.returncode, done.stderr) == (0, "")
    found = report["models"][0]
    assert (found["model"], found["placement"], found["numerics"]) == (
        "conv.onnx",
        "device",
        "equal",
    )
    assert (found["share_of_nodes"], found["share_of_macs"], found["partitions"]) == (1.0, 1.0, 1)
    assert {node["placement"] for node in found["nodes"]} == {"device"}
    assert report["versions"]["reference"] != device


def test_what_xnnpack_left_to_the_cpu_is_named_with_what_crosses(tmp_path: Path) -> None:
    model = tflite_models.chain(tmp_path / "chain.tflite")
    done, report = cover(tmp_path, str(model), "--device", "tflite:XNNPACK")
    assert done.returncode == 0, done.stderr
    found = report["models"][0]
    placements = [node["placement"] for node in found["nodes"]]
    assert len(placements) > 1
    assert found["placement"] == ("device" if set(placements) == {"device"} else "partly")
    assert found["partitions"] == len({node["partition"] for node in found["nodes"]})


def test_a_bad_model_costs_its_own_line(tmp_path: Path) -> None:
    good = models.doubling(tmp_path / "good.onnx")
    open_sizes = models.doubling(tmp_path / "open.onnx", (None, 3))
    damaged = tmp_path / "damaged.onnx"
    damaged.write_bytes(b"\x08\x07not a model")
    lost = tmp_path / "lost.onnx"
    weights = helper.make_tensor("w", TensorProto.FLOAT, [3], bytes(12), raw=True)
    graph = helper.make_graph(
        [helper.make_node("Add", ["x", "w"], ["y"])],
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [2, 3])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [2, 3])],
        [weights],
    )
    onnx.external_data_helper.set_external_data(graph.initializer[0], "weights.bin")
    graph.initializer[0].ClearField("raw_data")
    lost.write_bytes(helper.make_model(graph, ir_version=8).SerializeToString())
    paths = [str(path) for path in (good, open_sizes, damaged, lost)]
    done, report = cover(tmp_path, *paths, "nosuch", "--device", "onnxruntime:CPU")
    assert (done.returncode, done.stderr) == (0, "")
    said = {model["model"]: model.get("reason", "") for model in report["models"]}
    assert said["good.onnx"] == ""
    assert "its sizes are open: x" in said["open.onnx"]
    assert "damaged" in said["damaged.onnx"]
    assert "its weights 'weights.bin' are not beside it" in said["lost.onnx"]
    assert "neither a model of the catalog nor a file" in said["model 'nosuch'"]
    numerics = [model["numerics"] for model in report["models"]]
    assert numerics == ["equal", "not-run", "not-run", "not-run", "not-run"]


def test_a_report_into_no_folder_is_refused_before_the_work(tmp_path: Path) -> None:
    model = models.doubling(tmp_path / "m.onnx")
    where = tmp_path / "no" / "r.html"
    arguments = ("--device", "onnxruntime:CPU", "--report", str(where))
    done, report = cover(tmp_path, str(model), *arguments)
    said = f"--report: folder '{tmp_path}/no' is not there. Make it first.\n"
    assert (done.returncode, done.stdout, done.stderr, report) == (2, "", said, None)
    assert not where.parent.exists()


def test_open_sizes_are_given(tmp_path: Path) -> None:
    model = models.doubling(tmp_path / "open.onnx", (None, 3))
    _, report = cover(tmp_path, str(model), "--device", "onnxruntime:CPU", "--shape", "x=4,3")
    assert report["models"][0]["numerics"] == "equal"


def test_a_format_the_runtime_does_not_read_is_said(tmp_path: Path) -> None:
    model = tflite_models.doubling(tmp_path / "m.tflite")
    done, report = cover(tmp_path, str(model), "--device", "onnxruntime:CPU")
    assert done.returncode == 2
    assert done.stderr == (
        "edgert coverage: nothing could be asked about the 1 model named. See the reasons above.\n"
    )
    found = report["models"][0]
    assert (found["placement"], found["numerics"]) == ("unknown", "not-run")
    assert found["reason"] == "it takes no tflite files, only onnx"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), "edgert coverage: there is nothing, or too much, to ask about. "),
        (("m.onnx", "--suite", "onnx"), "edgert coverage: there is nothing, or too much, "),
        (("--suite", "models", "--models", "/nowhere"), "models /nowhere: is no directory. "),
        (("--suite", "models"), "--suite models: no model of the catalog is here. Pull some: "),
        (("m.onnx", "--shape", "x=1,a"), "--shape x: '1,a' are no sizes. "),
        (("m.onnx", "--shape", "x"), "--shape: 'x' is no NAME=VALUE. "),
        (("m.onnx", "--report", "r.pdf"), "report r.pdf: there is no format '.pdf'. "),
        (("m.onnx", "--fail-on", "regression"), "--fail-on regression: there is nothing to "),
    ],
)
def test_wrong_use_is_said_before_any_work(
    arguments: tuple[str, ...], said: str, tmp_path: Path
) -> None:
    done, report = cover(tmp_path, *arguments, "--device", "onnxruntime:CPU")
    assert (done.returncode, done.stdout, report) == (2, "", None)
    assert done.stderr.startswith(said)


def test_ended_by_sigterm_it_leaves_nothing(tmp_path: Path) -> None:
    model = models.convolution(tmp_path / "conv.onnx", (1, 3, 8, 8))
    made = {"EDGERT_CACHE": str(tmp_path / "cache"), "TMPDIR": str(tmp_path)}
    with subprocess.Popen(
        [*EDGERT, str(model), "--device", "onnxruntime:CPU"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | made,
    ) as process:
        wait_for(lambda: any(tmp_path.glob("edgert-coverage-*")), "the folder of a run")
        started = descendants(process.pid)
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 143
        assert process.stderr is not None
        assert "Traceback" not in process.stderr.read()
    wait_for(lambda: all(map(is_gone, started)), "the end of every process")
    assert not list(tmp_path.glob("edgert-coverage-*"))

"""``edgert coverage`` on the real suite, real runtimes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from edgert.coverage.adapters.registry import names

EDGERT = [sys.executable, "-m", "edgert", "coverage"]


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """One cache for all: making the suite takes seconds."""
    folder = tmp_path_factory.mktemp("coverage")
    return {"EDGERT_CACHE": str(folder / "cache"), "XDG_STATE_HOME": str(folder / "state")}


def run(places: dict[str, str], *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*EDGERT, *arguments],
        check=False,
        capture_output=True,
        text=True,
        env=os.environ | places,
        timeout=120,
    )


@pytest.mark.parametrize("device", ["onnxruntime:CPU", "openvino:CPU"])
def test_a_few_operators_are_equal_and_on_the_device(
    device: str, places: dict[str, str], tmp_path: Path
) -> None:
    file = tmp_path / "report.json"
    arguments = ("--suite", "onnx", "--device", device, "--only", "Relu,Gemm,BitwiseAnd")
    done = run(places, *arguments, "--report", str(file))
    assert (done.returncode, done.stderr) == (0, "")
    assert "OPERATOR    CASES  ON DEVICE  EQUAL" in done.stdout
    report = json.loads(file.read_text())
    assert (report["schema"], report["device"]) == ("edgert.coverage/1", device)
    assert {case["operator"] for case in report["cases"]} == {"Relu", "Gemm", "BitwiseAnd"}
    relu = [case for case in report["cases"] if case["case"] == "test_relu"]
    assert [case["placement"] for case in relu] == ["device"]
    assert [case["numerics"] for case in relu] == ["equal"]
    assert relu[0]["evidence"] == "hardware"
    assert relu[0]["latency_ms"] > 0


def test_the_same_run_twice_gives_the_same_report_but_for_latencies(places: dict[str, str]) -> None:
    arguments = ("--suite", "onnx", "--device", "onnxruntime:CPU", "--only", "Conv,Det")
    reports = [json.loads(run(places, *arguments, "--json").stdout) for _ in range(2)]
    for case in (*reports[0]["cases"], *reports[1]["cases"]):
        case["latency_ms"] = None
    assert reports[0] == reports[1]


def test_a_killed_run_goes_on_where_it_was(places: dict[str, str]) -> None:
    arguments = ("--suite", "onnx", "--device", "openvino:CPU", "--only", "Add,Mul,Sub", "--jobs")
    child = subprocess.Popen(
        [*EDGERT, *arguments, "1"], env=os.environ | places, stdout=subprocess.PIPE
    )
    folder = Path(places["XDG_STATE_HOME"]) / "edgert" / "coverage"
    before = set(folder.glob("*.jsonl"))
    while not (
        journals := [one for one in set(folder.glob("*.jsonl")) - before if one.stat().st_size]
    ):
        assert child.poll() is None
    child.send_signal(signal.SIGKILL)
    child.communicate()
    kept = [json.loads(line) for line in journals[0].read_bytes().splitlines() if line[-1:] == b"}"]
    marked = {**kept[0], "case": {**kept[0]["case"], "reason": "from the journal"}}
    journals[0].write_text(json.dumps(marked) + "\n")
    done = run(places, *arguments, "1", "--json")
    reasons = [case["reason"] for case in json.loads(done.stdout)["cases"] if "reason" in case]
    assert reasons.count("from the journal") == 1
    assert not journals[0].exists()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (
            ("--device", "nowhere:CPU"),
            "device: there is no adapter 'nowhere'. "
            f"One of: {', '.join(names())}; for example onnxruntime:CPU.\n",
        ),
        (
            ("--device", "onnxruntime:QNN"),
            "device onnxruntime:QNN: there is no execution provider 'QNN' here. ",
        ),
        (("--device", "onnxruntime"), "device: 'onnxruntime' names no device. "),
        (
            ("--device", "openvino:NPU"),
            "device openvino:NPU: OpenVINO sees no device 'NPU' here. It sees: CPU",
        ),
        (
            ("--device", "onnxruntime:CPU", "--only", "Convv"),
            "--only: the suite has no operator Convv. ",
        ),
        (("--device", "onnxruntime:CPU", "--forms", "int4"), "--forms: there is no form 'int4'. "),
    ],
)
def test_bad_input_is_said_in_a_line(
    arguments: tuple[str, ...], said: str, places: dict[str, str]
) -> None:
    done = run(places, "--suite", "onnx", *arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(said)
    assert done.stderr.count("\n") == 1

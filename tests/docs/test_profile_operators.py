"""``tools/profile-operators`` on a real profile: what a run proved goes in, the rest stays."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from edgert.coverage.record import Case, Report
from edgert.coverage.report.write import write
from edgert.profiles.load import load_profile

ROOT = Path(__file__).parents[2]
CASE = Case(
    case="test_relu",
    operator="Relu",
    opset=14,
    dtype="f32",
    form="published",
    placement="device",
    numerics="equal",
    evidence="hardware",
)


def tool(
    report: Path, profile: Path, accelerator: str, format_: str = "onnx"
) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, ROOT / "tools" / "profile-operators", report, profile]
    more = ["--accelerator", accelerator, "--url", "https://example.org/report.json"]
    more += ["--format", format_]
    return subprocess.run(
        [*command, *more], capture_output=True, text=True, timeout=60, check=False
    )


@pytest.fixture
def report(tmp_path: Path) -> Path:
    wrong = msgspec.structs.replace(CASE, case="test_det", operator="Det", numerics="differs")
    half = msgspec.structs.replace(CASE, case="test_add", operator="Add", placement="partly")
    frozen = msgspec.structs.replace(half, form="frozen", placement="device")
    cases = [CASE, wrong, half, frozen]
    path = tmp_path / "report.json"
    write([Report(device="qnn:HTP", versions={"qnn": "2"}, cases=cases)], path)
    return path


@pytest.mark.parametrize(("name", "accelerator"), [("qcs6490", "htp"), ("emulated-npu", "npu")])
def test_what_is_proved_is_written_with_its_source(
    name: str, accelerator: str, report: Path, tmp_path: Path
) -> None:
    profile = tmp_path / f"{name}.yaml"
    shutil.copy(ROOT / "device_profiles" / f"{name}.yaml", profile)
    before = load_profile(profile).spec
    done = tool(report, profile, accelerator)
    assert (done.returncode, done.stderr) == (0, "")
    after = load_profile(profile).spec
    operators = after.accelerators[accelerator].operators["onnx"]
    assert (list(operators.names), operators.source) == (["Add", "Relu"], "coverage-qnn-htp")
    assert after.sources["coverage-qnn-htp"].version == "qnn 2"
    assert after.match == before.match
    assert set(after.sources) == {*before.sources, "coverage-qnn-htp"}


def test_a_profile_without_that_accelerator_is_left_alone(report: Path, tmp_path: Path) -> None:
    profile = tmp_path / "qcs6490.yaml"
    shutil.copy(ROOT / "device_profiles" / "qcs6490.yaml", profile)
    before = profile.read_text()
    done = tool(report, profile, "npu")
    assert done.returncode == 1
    assert done.stderr == "profile: has no accelerators.npu. There are: htp.\n"
    assert profile.read_text() == before


def test_a_tflite_operator_is_proved_by_one_element_type(tmp_path: Path) -> None:
    placed = msgspec.structs.replace(
        CASE,
        operator="ADD",
        dtype="i8",
        form="tflite",
        numerics="not-run",
        evidence="vendor-compiler",
    )
    refused = msgspec.structs.replace(placed, dtype="f32", placement="cpu")
    half = [msgspec.structs.replace(each, operator="SUM") for each in (placed, refused)]
    half[1] = msgspec.structs.replace(half[1], dtype="i8")
    path = tmp_path / "report.json"
    write([Report(device="vela:npu", versions={"vela": "5"}, cases=[placed, refused, *half])], path)
    profile = tmp_path / "imx93.yaml"
    shutil.copy(ROOT / "device_profiles" / "imx93.yaml", profile)
    done = tool(path, profile, "npu", "tflite")
    assert (done.returncode, done.stderr) == (0, "")
    operators = load_profile(profile).spec.accelerators["npu"].operators["tflite"]
    assert list(operators.names) == ["ADD"]

"""Vendors' tools: what their words mean, and what is said where they are not set up."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from edgert.coverage import environments
from edgert.coverage.adapters.registry import spec_of
from edgert.coverage.adapters.vela import refusals
from edgert.coverage.suites import operators
from edgert.errors import UserError

SAID = """\
Warning: No memory mode specified. Using a default of Dedicated_Sram_384KB.

Warning (supported operators) operator: QUANTIZE, ofm: 'tfl.quantize4'
Reason: Operation has tensor with unsupported DataType Float32 (truediv_3)
Feature-map dataTypes must be one of {"INT16", "INT8"}

Warning (supported operators) operator: DIV, ofm: 'truediv_3'
Reason: Unsupported opType

Network summary
"""


def test_vela_says_what_stays_on_the_cpu_and_why() -> None:
    assert refusals(SAID) == {
        "tfl.quantize4": "Operation has tensor with unsupported DataType Float32 (truediv_3); "
        'Feature-map dataTypes must be one of {"INT16", "INT8"}',
        "truediv_3": "Unsupported opType",
    }


def test_what_vela_writes_past_python_is_heard_and_the_fds_come_back() -> None:
    """In a child: what a test writes is caught by pytest itself."""
    code = (
        "import os; from edgert.coverage.adapters.vela import _heard\n"
        "with _heard() as heard:\n"
        "    os.write(1, b'core '); os.write(2, b'and '); print('python')\n"
        "    said = heard()\n"
        "print(f'after: {said}', end='')\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.stdout, done.stderr) == ("after: core and python\n", "")


def test_without_what_writes_its_models_a_suite_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(operators.importlib.util, "find_spec", lambda name: None)
    said = (
        "suite tflite: its models are written by ai-edge-litert, which is not installed. "
        "Run: pip install 'edgert[tflite]'."
    )
    with pytest.raises(UserError) as raised:
        operators.cases_of("tflite", ["published"], "")
    assert str(raised.value) == said


@pytest.mark.parametrize("name", sorted(environments.ENVIRONMENTS))
def test_what_is_not_set_up_says_how(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EDGERT_CACHE", str(tmp_path))
    with pytest.raises(UserError, match=rf"is not set up\. Run: edgert coverage setup {name}"):
        spec_of(f"{name}:any", {}, 0)


def test_half_an_environment_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EDGERT_CACHE", str(tmp_path))
    vela = environments.ENVIRONMENTS["vela"]
    vela.python.parent.mkdir(parents=True)
    vela.python.touch()
    assert vela.is_made
    vela.unfinished.touch()
    assert not vela.is_made


def test_a_licence_is_asked_about_before_anything_is_installed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EDGERT_CACHE", str(tmp_path))
    done = subprocess.run(
        [sys.executable, "-m", "edgert", "coverage", "setup", "qnn"],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 2
    assert "licence:  MIT for the provider; Qualcomm's own terms" in done.stderr
    said = "adapter qnn: its licence was not accepted. Answer y, or add --yes."
    assert done.stderr.splitlines()[-1].endswith(said)
    assert not environments.ENVIRONMENTS["qnn"].folder.exists()

"""Devices that are not there: the emulated one computes and says so, a list never proves."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from edgert.coverage.record import Model
from edgert.coverage.report.cells import verdict
from tests import models, tflite_models

Edgert = Callable[..., subprocess.CompletedProcess[str]]


def found(done: subprocess.CompletedProcess[str]) -> Any:
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)["models"][0]


@pytest.fixture(scope="module")
def convolution(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return models.convolution(tmp_path_factory.mktemp("m") / "conv.onnx", (1, 3, 8, 8))


@pytest.mark.parametrize(
    ("options", "numerics"),
    [((), "equal"), (("precision=i8",), "differs"), (("faults.noise=0.1",), "differs")],
)
def test_the_emulated_device_computes_with_its_faults(
    options: tuple[str, ...], numerics: str, convolution: Path, edgert: Edgert
) -> None:
    given = [part for option in options for part in ("--option", option)]
    model = found(edgert("coverage", convolution, "--device", "emulated:NPU", "--json", *given))
    assert (model["placement"], model["numerics"]) == ("device", numerics)
    assert model["evidence"] == "emulated"


def test_operators_it_lacks_are_refused_or_left_to_the_cpu(
    convolution: Path, edgert: Edgert
) -> None:
    ask = ["coverage", convolution, "--device", "emulated:NPU", "--json", "--option"]
    model = found(edgert(*ask, "operators=[Convolution]"))
    assert (model["placement"], model["numerics"]) == ("rejected", "unsupported")
    assert "it lacks" in model["reason"]
    model = found(edgert(*ask, "operators=[Convolution]", "--option", "unsupported=cpu"))
    assert (model["placement"], model["numerics"]) == ("partly", "equal")


@pytest.mark.parametrize(
    ("device", "options", "said"),
    [
        ("emulated:TPU", (), "no device 'TPU' is emulated. There are: NPU, GPU."),
        (
            "emulated:NPU",
            ("--option", "pecision=i8"),
            "there is no option 'pecision'. Did you mean 'precision'?",
        ),
        ("profile:nosuch", (), "there is no profile 'nosuch'. Profiles: "),
        ("profile:imx93/gpu", (), "has no list of operators of 'gpu'. There is: profile:imx93/npu"),
        ("profile:generic-x86-64", (), "lists the operators of no accelerator."),
        ("profile:imx93", ("--option", "a=1"), "a list of operators has no options."),
    ],
)
def test_a_device_that_is_none_is_said(
    device: str, options: tuple[str, ...], said: str, convolution: Path, edgert: Edgert
) -> None:
    done = edgert("coverage", convolution, "--device", device, *options)
    assert done.returncode == 2
    assert done.stderr.startswith(f"device {device}: ")
    assert said in done.stderr


def test_what_a_profile_lists_is_listed_and_never_supported(tmp_path: Path, edgert: Edgert) -> None:
    model = tflite_models.doubling(tmp_path / "add.tflite")
    page = tmp_path / "report.html"
    ask = ["coverage", model, "--device", "profile:imx93"]
    done = edgert(*ask, "--report", page)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[1].split()[:2] == ["add.tflite", "listed"]
    assert "1 model: 1 wholly listed; 0 unsupported, 0 failed; no numbers to compare" in done.stdout
    assert " supported" not in done.stdout
    assert '"verdict":"listed"' in page.read_text()
    entry = found(edgert(*ask, "--json"))
    assert (entry["evidence"], entry["numerics"]) == ("static-list", "not-run")


def test_what_a_profile_does_not_list_is_named(tmp_path: Path, edgert: Edgert) -> None:
    path = models.places_of_ones(tmp_path / "nonzero.onnx")
    model = found(edgert("coverage", path, "--device", "profile:rk3588", "--json"))
    assert (model["placement"], model["evidence"]) == ("cpu", "static-list")
    assert model["refused"][0]["operator"] == "NonZero"
    assert "does not have it" in model["refused"][0]["reason"]


def test_no_placement_of_a_list_comes_to_supported() -> None:
    for placement in ("device", "partly", "cpu", "rejected", "unknown"):
        for numerics in ("equal", "not-run"):
            model = Model(
                model="m",
                sha256="",
                placement=placement,
                numerics=numerics,
                evidence="static-list",
            )
            assert verdict(model) != "supported"

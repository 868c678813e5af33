"""Runtimes that answer, lie, crash, hang and cannot be imported: each costs its own line."""

from __future__ import annotations

import pytest

from edgert.backends.survey import MissingRuntime, Runtime, survey

THEIRS = '''
import os
import threading

from edgert.backends.base import DeviceReport


class Whole:
    name = "theirs"

    def version(self):
        return "theirs 1"

    def devices(self):
        return ("CPU",)


class Raises(Whole):
    def devices(self):
        raise ValueError("no bus")


class Dies(Whole):
    def devices(self):
        print("driver fault", file=__import__("sys").stderr, flush=True)
        os.abort()


class Hangs(Whole):
    def devices(self):
        threading.Event().wait()


class Babbles(Whole):
    def version(self):
        return {"not": "a text"}


class Npu(Whole):
    """Lists an NPU on which each subclass fails in its own way."""

    def devices(self):
        return ("CPU", "NPU")

    def describe(self, device):
        from edgert.backends.base import DeviceFacts

        return DeviceFacts(f"Their {device}", "1.2")

    def compile(self, request):
        return Session(self.factor)


class Right(Npu):
    factor = 2.0


class Wrong(Npu):
    factor = 0.0


class DiesCompiling(Npu):
    def compile(self, request):
        os.abort()


class HangsCompiling(Npu):
    def compile(self, request):
        threading.Event().wait()


class Refuses(Npu):
    def compile(self, request):
        from edgert.errors import DeviceError

        raise DeviceError("theirs:NPU", "firmware is too old", "Update it")


class ReadsNoOnnx(Npu):
    def compile(self, request):
        from edgert.errors import ModelError

        raise ModelError("model", "it is no model of theirs")


class Session:
    device = DeviceReport("theirs:NPU", "theirs:NPU", "f32", "theirs 1")

    def __init__(self, factor):
        self._factor = factor

    def start(self, inputs, outputs, done):
        outputs["y"][...] = inputs["x"] * self._factor
        done(None)

    def close(self):
        pass
'''
CLASSES = (
    *("Whole", "Raises", "Dies", "Hangs", "Babbles", "Lost"),
    *("Right", "Wrong", "DiesCompiling", "HangsCompiling", "Refuses", "ReadsNoOnnx"),
)


@pytest.fixture
def theirs(tmp_path, monkeypatch):
    """Every backend of ``CLASSES``, installed under its name in small letters."""
    (tmp_path / "survey_backends.py").write_text(THEIRS)
    metadata = tmp_path / "survey_backends-1.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: survey-backends\nVersion: 1\n")
    lines = [f"{name.lower()} = survey_backends:{name}" for name in CLASSES]
    (metadata / "entry_points.txt").write_text("\n".join(["[edgert.backends]", *lines]))
    monkeypatch.syspath_prepend(tmp_path)


def ask(name: str, **limits: float) -> Runtime | MissingRuntime:
    (answer,) = survey([name], **limits)
    assert answer.name == name
    return answer


def npu(name: str, **limits: float):
    answer = ask(name, **limits)
    assert isinstance(answer, Runtime), answer
    cpu, device = answer.devices
    assert (cpu.device, cpu.usable, cpu.proof, cpu.name) == ("CPU", True, "listed", "Their CPU")
    assert (device.device, device.name, device.driver) == ("NPU", "Their NPU", "1.2")
    return device


def test_a_runtime_that_answers(theirs):
    answer = ask("whole")
    assert (answer.version, len(answer.devices)) == ("theirs 1", 1)
    assert answer.devices[0].usable


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("raises", "ValueError: no bus"),
        ("dies", "signal 6 (SIGABRT); it said last: driver fault"),
        ("babbles", "ValidationError: Expected `str`"),
        ("lost", "it is installed and cannot be imported"),
    ],
)
def test_a_broken_runtime_is_a_line(theirs, name, said):
    answer = ask(name)
    assert isinstance(answer, MissingRuntime)
    assert said in answer.missing
    assert answer.mend


def test_a_runtime_that_hangs_is_given_up(theirs):
    answer = ask("hangs", ask_timeout_s=1.0)
    assert "did not finish within 1 s" in answer.missing


def test_a_broken_runtime_hides_no_other(theirs):
    broken, whole = survey(["dies", "whole"])
    assert isinstance(broken, MissingRuntime)
    assert isinstance(whole, Runtime)


def test_a_device_on_which_a_model_ran(theirs):
    device = npu("right")
    assert (device.usable, device.proof, device.emulated, device.reason) == (True, "ran", False, "")


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("wrong", "it computes wrong results"),
        ("diescompiling", "signal 6 (SIGABRT)"),
        ("refuses", "firmware is too old"),
    ],
)
def test_a_device_that_is_listed_and_fails_is_not_usable(theirs, name, said):
    device = npu(name)
    assert (device.usable, device.proof) == (False, "")
    assert said in device.reason
    assert device.mend


def test_a_device_that_hangs_is_not_usable(theirs):
    device = npu("hangscompiling", prove_timeout_s=1.0)
    assert not device.usable
    assert "did not finish within 1 s" in device.reason


def test_where_the_trial_model_cannot_be_read_the_listing_counts(theirs):
    device = npu("readsnoonnx")
    assert (device.usable, device.proof) == (True, "listed")


def test_a_runtime_that_is_not_installed(monkeypatch, tmp_path):
    answer = ask("no-such-runtime")
    assert answer.missing == "there is no backend of that name"


def test_an_emulated_device_is_named_as_such():
    pytest.importorskip("openvino")
    answer = ask("emulated")
    assert {device.device for device in answer.devices} == {"NPU", "GPU"}
    assert all(device.emulated for device in answer.devices)

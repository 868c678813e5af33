import logging
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError

from edgert.backends import registry
from edgert.errors import DeviceError, ModelError, PipelineError, RunError
from edgert.models.reader import Models
from edgert.pipeline.adapter import read_as
from edgert.stages.base import PlanContext
from edgert.stages.harness import opened
from edgert.stages.infer import Infer
from edgert.stages.infer_check import option_faults, refuse_other_inputs
from edgert.stages.infer_options import InferOptions
from edgert.tensor import FrameHeader, PortSpec, TensorSpec
from tests import models

X = {"x": TensorSpec("f32", (2, 3))}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    models.doubling(tmp_path / "doubling.onnx")
    return tmp_path


def context(folder: Path) -> PlanContext:
    return PlanContext("detector", "stage 'detector'", str(folder), Models(folder), {})


def tensors(**specs: TensorSpec) -> dict[str, PortSpec]:
    return {"tensor": PortSpec("tensors", specs)}


def running(folder: Path, inputs: dict[str, TensorSpec] = X, **settings: Any) -> Any:
    settings = {"model": "doubling.onnx", **settings}
    return opened(Infer, settings, tensors(**inputs), context(folder), threads=2)


def planned(folder: Path, inputs: dict[str, TensorSpec] = X, **settings: Any) -> PortSpec:
    options = read_as(InferOptions, {"model": "doubling.onnx", **settings})
    return Infer.plan(options, tensors(**inputs), context(folder))["outputs"]


@pytest.mark.parametrize("device", ["CPU", "openvino:CPU", "onnxruntime:CPU"])
def test_the_loan_is_filled_from_the_sample_without_a_copy(device: str, folder: Path) -> None:
    header = FrameHeader(sequence=7, width=64, height=48)
    with running(folder, device=device) as run:
        for number in (1, 5):
            x = np.full((2, 3), number, np.float32)
            sample = run.feed({"tensor": {"x": x}}, header)["outputs"]
            assert (sample.tensors["y"] == 2 * number).all()
            assert sample.header == header
        assert run.stage.capacity == 2
    assert run.stage.context.copied_bytes == 0


THEIRS = """
import os
import sys

from edgert.backends.options import unknown_option
from edgert.errors import DeviceError


class Theirs:
    name = "theirs"

    def devices(self):
        return ("NPU", "GPU", "TPU", "BAD")

    def option_names(self, device):
        if device == "BAD":
            os._exit(3)
        if device != "TPU":
            raise DeviceError(f"theirs:{device}", "there is no such device here")
        return ["speed"]

    def compile(self, request):
        for key in request.options:
            raise unknown_option(key, ["speed"], "theirs:NPU")
        if request.device == "GPU":
            sys.exit(0)
        raise ValueError("the driver says 17")
"""


@pytest.fixture
def theirs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A backend of somebody else's, which raises what it likes."""
    (tmp_path / "infer_theirs.py").write_text(THEIRS)
    metadata = tmp_path / "infer_theirs-1.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: infer-theirs\nVersion: 1\n")
    entry_points = "[edgert.backends]\ntheirs = infer_theirs:Theirs\n"
    (metadata / "entry_points.txt").write_text(entry_points)
    monkeypatch.syspath_prepend(tmp_path)
    registry._third_party.cache_clear()
    yield
    monkeypatch.undo()
    registry._third_party.cache_clear()


@pytest.mark.usefixtures("theirs")
def test_whatever_a_runtime_raises_the_next_device_is_tried(
    folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with running(folder, device=["theirs:NPU", "theirs:GPU", "CPU"]) as run:
        report = run.stage.context.report["device"]
    assert report["actual"] == "openvino:CPU"
    assert report["refused"] == {
        "theirs:NPU": "its runtime raised ValueError: the driver says 17",
        "theirs:GPU": "its runtime raised SystemExit: 0",
    }
    assert "in compile" in caplog.text


def test_the_plan_says_what_comes_out(folder: Path) -> None:
    port = planned(folder)
    assert port.kind == "tensors"
    assert port.tensors == {"y": TensorSpec("f32", (2, 3))}
    file = port.attributes["model_file"]
    assert file["path"] == str(folder / "doubling.onnx")
    assert file["format"] == "onnx"
    assert file["shapes"] == {}


def test_inputs_that_are_open_name_the_line_to_add(tmp_path: Path) -> None:
    models.convolution(tmp_path / "m.onnx", ["n", 3, "h", "w"])
    with pytest.raises(PipelineError) as caught:
        planned(tmp_path, model="m.onnx", max_output={"y": [1, 10]})
    assert str(caught.value) == (
        "stage 'detector': model 'm.onnx' leaves the size of its input 'x' open: f32[?,3,?,?]. "
        "Add 'shape: {x: [N, 3, N, N]}' with a number for each N."
    )


def test_shapes_that_were_given_reach_the_runtime(tmp_path: Path) -> None:
    models.convolution(tmp_path / "m.onnx", ["n", 3, "h", "w"])
    x = {"x": TensorSpec("f32", (1, 3, 8, 8))}
    with running(tmp_path, x, model="m.onnx", shape={"x": [1, 3, 8, 8]}) as run:
        sample = run.feed({"tensor": {"x": np.ones((1, 3, 8, 8), np.float32)}})["outputs"]
        assert sample.tensors["y"].shape == (1, 256)


@pytest.mark.parametrize(
    ("arrives", "message"),
    [
        ({"x": TensorSpec("u8", (2, 3))}, "'x' arrives as u8[2,3], and model 'doubling.onnx'"),
        ({"x": TensorSpec("f32", (3, 2))}, "'x' arrives as f32[3,2]"),
        ({"z": TensorSpec("f32", (2, 3))}, "'x' does not arrive"),
        ({"z": TensorSpec("f32", (2, 3))}, "What arrives: z"),
    ],
)
def test_what_arrives_must_fit(arrives: dict[str, TensorSpec], message: str, folder: Path) -> None:
    with pytest.raises(PipelineError) as caught:
        planned(folder, arrives)
    assert "stage 'detector', input 'tensor': " in str(caught.value)
    assert message in str(caught.value)
    assert "needs f32[2,3]" in str(caught.value)


def test_every_fault_is_told_in_one_run(folder: Path) -> None:
    with pytest.raises(PipelineError) as caught:
        planned(
            folder,
            {"x": TensorSpec("u8", (2, 3))},
            device=["openvini:CPU", "AUTO:CPU"],
            max_output={"no": [1]},
        )
    assert len(caught.value.faults) == 4


def test_outputs_that_are_open_name_the_line_to_add(tmp_path: Path) -> None:
    models.places_of_ones(tmp_path / "m.onnx")
    x = {"x": TensorSpec("f32", (6,))}
    for wrong in ({}, {"y": [2, 6]}, {"y": [6]}, {"y": [1, 0]}):
        with pytest.raises(PipelineError, match=r"Add 'max_output: \{y: \[1, N\]\}'"):
            planned(tmp_path, x, model="m.onnx", max_output=wrong)


def test_outputs_that_are_open_have_the_size_of_each_frame(tmp_path: Path) -> None:
    models.places_of_ones(tmp_path / "m.onnx")
    x = {"x": TensorSpec("f32", (6,))}
    with running(tmp_path, x, model="m.onnx", max_output={"y": [1, 6]}) as run:
        for ones in ([0, 3], [1, 2, 5], []):
            given = np.zeros(6, np.float32)
            given[ones] = 1
            sample = run.feed({"tensor": {"x": given}})["outputs"]
            assert sample.tensors["y"].tolist() == [ones]
    assert run.stage.context.copied_bytes > 0


def test_the_next_device_does_it_and_the_reason_is_kept(
    folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING), running(folder, device=["VPU", "CPU"]) as run:
        device = run.stage.context.report["device"]
    assert device["requested"] == "VPU, CPU"
    assert device["actual"] == "openvino:CPU"
    assert device["precision"] == "f32"
    assert set(device["refused"]) == {"openvino:VPU", "onnxruntime:VPU"}
    assert "there is no device 'VPU' here" in device["refused"]["openvino:VPU"]


def test_fallback_forbid_is_fatal_with_every_reason(folder: Path) -> None:
    with (
        pytest.raises(DeviceError) as caught,
        running(folder, device=["VPU", "CPU"], fallback="forbid"),
    ):
        pass
    said = str(caught.value)
    assert said.startswith("stage 'detector', device: no device took model 'doubling.onnx': ")
    assert "openvino:VPU: there is no device" in said
    assert "onnxruntime:VPU: there is no execution provider" in said
    assert "Write 'fallback: allow'" in said


def test_no_device_at_all_is_fatal_and_says_what_would_do(folder: Path) -> None:
    with (
        pytest.raises(DeviceError, match="no device took model") as caught,
        running(folder, device=["VPU", "openvino:FPGA"]),
    ):
        pass
    assert str(caught.value).endswith(" Name one that is here: `edgert devices` shows them.")


def test_a_runtime_that_does_not_read_the_format_is_not_tried(folder: Path) -> None:
    openvino = pytest.importorskip("openvino")
    openvino.save_model(openvino.Core().read_model(folder / "doubling.onnx"), folder / "m.xml")
    with running(folder, model="m.xml", device=["onnxruntime:CPU", "CPU"]) as run:
        device = run.stage.context.report["device"]
    assert device["actual"] == "openvino:CPU"
    assert device["refused"] == {"onnxruntime:CPU": "onnxruntime reads no openvino-ir model"}


def test_no_device_whose_runtime_reads_the_format_is_a_fault_of_the_file(folder: Path) -> None:
    with pytest.raises(PipelineError) as caught:
        planned(folder, device=["tflite:CPU", "tflite:XNNPACK"])
    assert str(caught.value) == (
        "stage 'detector', device: tflite reads no onnx model. "
        "Name a device of openvino or onnxruntime, which do."
    )


def test_each_device_gets_its_own_options(folder: Path) -> None:
    options = {
        "onnxruntime": {"spinning": False},
        "emulated": {"latency_ms": 0.1},
        "emulated:NPU": {"faults": {"refuse": "too hot"}},
    }
    devices = ["emulated:NPU", "emulated:NPU.1", "onnxruntime:CPU"]
    with running(folder, device=devices, options=options) as run:
        device = run.stage.context.report["device"]
    assert device["actual"] == "emulated:NPU.1"
    assert device["refused"] == {"emulated:NPU": "it refuses the model: too hot"}


def test_options_of_a_device_that_is_not_the_stages_are_faults(folder: Path) -> None:
    options = {"emulated:NPU.2": {}, "tflite": {}, "openvino": 3, "openvino:NPU": {}}
    with pytest.raises(PipelineError) as caught:
        planned(folder, device=["emulated:NPU.1", "openvino:CPU", "NPU"], options=options)
    place = "stage 'detector', options"
    assert str(caught.value).splitlines() == [
        f"{place}, 'emulated:NPU.2': the stage runs on no such device. "
        "Its devices: emulated:NPU.1, openvino:CPU, NPU.",
        f"{place}, 'openvino': it has to be options by name. Write: openvino: {{name: value}}.",
    ]


def test_an_emulated_device_is_named_as_such(folder: Path) -> None:
    settings = {"device": ["emulated:NPU"], "options": {"latency_ms": 0.1}}
    with running(folder, **settings) as run:
        first = run.feed({"tensor": {"x": np.zeros((2, 3), np.float32)}})["outputs"]
        seen = first.tensors["y"].copy()
        again = run.feed({"tensor": {"x": np.ones((2, 3), np.float32)}})["outputs"]
        assert (again.tensors["y"] == seen).all()
        assert seen.sum() > 0
        device = run.stage.context.report["device"]
    assert device["actual"] == "emulated:NPU"
    assert device["emulated"]
    assert device["precision"] == "replayed"


def test_an_inference_that_fails_ends_its_frame_with_the_reason(tmp_path: Path) -> None:
    models.fails_on_demand(tmp_path / "m.onnx")
    inputs = {"x": TensorSpec("f32", (2, 3)), "to": TensorSpec("i64", (2,))}
    frame = {"x": np.ones((2, 3), np.float32), "to": np.array([4, 2])}
    with (
        running(tmp_path, inputs, model="m.onnx") as run,
        pytest.raises(RunError, match="an inference failed"),
    ):
        run.feed({"tensor": frame})


def test_a_model_that_is_not_pulled_yet_names_the_command(folder: Path) -> None:
    port = planned(folder)
    port.attributes["model_file"]["path"] = ""
    with running(folder) as run:
        run.stage.context.outputs["outputs"].attributes["model_file"]["path"] = ""
        with pytest.raises(ModelError, match="Run: edgert models pull"):
            Infer(run.stage.settings, run.stage.context).open()


def test_a_file_that_is_replaced_after_the_plan_is_refused(folder: Path) -> None:
    with running(folder) as run:
        models.two_in_two_out(folder / "doubling.onnx")
        with pytest.raises(DeviceError, match="its description has the outputs y"):
            Infer(run.stage.settings, run.stage.context).open()


PICTURE = {"x": TensorSpec("u8", (1, 3, 2, 2))}
BYTES = {"byte_inputs": {"x": {"layout": "NCHW", "scale": 0.5, "mean": [1.0], "std": []}}}


def bytes_arriving(spec: TensorSpec = PICTURE["x"]) -> dict[str, PortSpec]:
    return {"tensor": PortSpec("tensors", {"x": spec}, 0, BYTES)}


@pytest.fixture
def pictures(tmp_path: Path) -> Path:
    models.doubling(tmp_path / "doubling.onnx", (1, 3, 2, 2))
    models.doubling(tmp_path / "whole.onnx", (1, 3, 2, 2), "u8")
    return tmp_path


@pytest.mark.parametrize("device", ["openvino:CPU", "onnxruntime:CPU"])
def test_the_model_converts_bytes_that_say_how(device: str, pictures: Path) -> None:
    settings = {"model": "doubling.onnx", "device": device}
    with opened(Infer, settings, bytes_arriving(), context(pictures)) as run:
        x = np.full((1, 3, 2, 2), 9, np.uint8)
        sample = run.feed({"tensor": {"x": x}})["outputs"]
        assert (sample.tensors["y"] == 7).all()
    assert run.stage.context.copied_bytes == 0


@pytest.mark.parametrize(
    ("model", "spec", "mend"),
    [
        ("doubling.onnx", TensorSpec("u8", (1, 3, 2, 4)), "Write 'convert: here'"),
        ("doubling.onnx", TensorSpec("i8", (1, 3, 2, 2)), "Write 'convert: here'"),
        ("whole.onnx", PICTURE["x"], "Write 'convert: here'"),
    ],
)
def test_bytes_that_the_model_cannot_convert_are_refused(
    model: str, spec: TensorSpec, mend: str, pictures: Path
) -> None:
    options = InferOptions(model=model)
    with pytest.raises(
        PipelineError, match=r"'x' arrives as [ui]8\[1,3,2,.\], and model"
    ) as caught:
        Infer.plan(options, bytes_arriving(spec), context(pictures))
    assert mend in str(caught.value)


def test_bytes_that_do_not_say_how_are_refused(pictures: Path) -> None:
    with pytest.raises(PipelineError, match=r"'x' arrives as u8\[1,3,2,2\]"):
        planned(pictures, PICTURE)


def test_a_backend_that_does_not_convert_names_the_line_to_add(pictures: Path) -> None:
    port = bytes_arriving()["tensor"]
    with (
        models.session_of("openvino", pictures / "doubling.onnx") as session,
        pytest.raises(ModelError) as caught,
    ):
        refuse_other_inputs(session, port, "stage 'detector'")
    assert str(caught.value) == (
        "stage 'detector', model: it wants 'x' as f32[1,3,2,2] there, and u8[1,3,2,2] arrives. "
        "Write 'convert: here' at the stage that makes it."
    )


def test_another_input_than_planned_is_refused(folder: Path) -> None:
    with running(folder) as run:
        models.doubling(folder / "doubling.onnx", (2, 4))
        with pytest.raises(DeviceError, match=r"wants 'x' as f32\[2,4\] there, and f32\[2,3\]"):
            Infer(run.stage.settings, run.stage.context).open()


def compiled_in(cache: Path) -> list[Path]:
    return [file for file in (cache / "compiled").rglob("*") if file.is_file()]


def test_what_was_compiled_is_used_again_and_made_anew_where_it_is_damaged(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EDGERT_CACHE", str(folder / "cache"))
    x = np.full((2, 3), 3, np.float32)

    def doubled() -> Any:
        with running(folder, device="openvino:CPU") as run:
            return run.feed({"tensor": {"x": x}})["outputs"].tensors["y"].copy()

    assert (doubled() == 6).all()
    (blob,) = compiled_in(folder / "cache")
    written = blob.stat().st_mtime_ns
    assert (doubled() == 6).all()
    assert compiled_in(folder / "cache") == [blob]
    assert blob.stat().st_mtime_ns == written
    blob.chmod(0o600)
    blob.write_bytes(blob.read_bytes()[:100] + b"not a compiled model")
    assert (doubled() == 6).all()


@pytest.mark.parametrize("device", ["tflite:CPU", "openvino:CPU"])
def test_numbers_of_a_quantised_model_go_in_as_they_arrive(device: str, tmp_path: Path) -> None:
    pytest.importorskip("ai_edge_litert")
    models.of("tflite").doubling(tmp_path / "m.tflite", (1, 4), "u8")
    x = {"x": TensorSpec("u8", (1, 4))}
    with running(tmp_path, x, model="m.tflite", device=device) as run:
        sample = run.feed({"tensor": {"x": np.array([[1, 2, 3, 4]], np.uint8)}})["outputs"]
        assert sample.tensors["y"].tolist() == [[2, 4, 6, 8]]


def test_an_option_that_a_device_refuses_is_named(folder: Path) -> None:
    models.doubling(folder / "whole.onnx", dtype="i32")
    whole = {"x": TensorSpec("i32", (2, 3))}
    settings = {"device": "emulated:NPU", "options": {"faults": {"noise": 1}}}
    with (
        pytest.raises(DeviceError, match="option 'faults': the model has no outputs of floats"),
        running(folder, whole, model="whole.onnx", **settings),
    ):
        pass


NPU = "stage 'detector', device 'emulated:NPU'"
MISSPELT = (
    "stage 'detector', device 'openvino:CPU', options: there is no option 'NUM_STREAM'. "
    "Did you mean 'NUM_STREAMS'?"
)


@pytest.mark.parametrize(
    ("devices", "options", "said"),
    [
        (
            ["emulated:NPU"],
            {"latency_ms": 0, "faults": {"die_after": -1}, "lane": 2},
            [
                f"{NPU}, options, latency_ms: it must be more than 0 and at most 600000.",
                f"{NPU}, options, faults, die_after: it should be greater than or equal to 0.",
                f"{NPU}, options: there is no option 'lane'. Did you mean 'lanes'?",
            ],
        ),
        (["emulated:NPU"], {"latency_ms": 1}, []),
        # The same for all devices of the runtime is said once.
        (
            ["emulated:NPU", "emulated:NPU.1"],
            {"emulated": {"lane": 2}},
            [f"{NPU}, options: there is no option 'lane'. Did you mean 'lanes'?"],
        ),
        # What is written for every device may be for one of them.
        (["CPU", "emulated:NPU"], {"NUM_STREAMS": 1, "spinning": True, "lanes": 2}, []),
        (
            ["CPU", "emulated:NPU"],
            {"NUM_STREAM": 1},
            [MISSPELT.replace(", device 'openvino:CPU'", "")],
        ),
        # OpenVINO's library alone knows its properties: a child is asked.
        (["openvino:CPU"], {"NUM_STREAM": 1}, [MISSPELT]),
        (["openvino:CPU", "onnxruntime:CPU"], {"openvino": {"NUM_STREAM": 1}}, [MISSPELT]),
        (["openvino:CPU", "openvino:GPU.7"], {"openvino:CPU": {"NUM_STREAM": 1}}, [MISSPELT]),
        (["openvino:HETERO:CPU"], {"openvino": {"DEVICE_PROPERTIES": {}}}, []),
        # A device that is not here may know it: that it is not here is told by who opens it.
        (["openvino:CPU", "openvino:GPU.7"], {"openvino": {"GPU_QUEUE": 1}}, []),
        (["openvino:GPU.7"], {"NO_SUCH": 1}, []),
        (
            ["CPU", "emulated:NPU"],
            {"spinning": "yes", "emulated:NPU": {"sped": 1}},
            [
                "stage 'detector', device 'onnxruntime:CPU', options: Expected `bool`, got `str` - "
                "at `$.spinning`.",
                f"{NPU}, options: there is no option 'sped'. Did you mean 'seed'?",
            ],
        ),
        # Another option of the device's may be what this one needs.
        (["CPU", "emulated:NPU"], {"state": "here", "emulated": {"faults": {"once": True}}}, []),
    ],
)  # fmt: skip
def test_options_are_looked_at_before_the_run(
    folder: Path, devices: list[str], options: dict, said: list[str]
) -> None:
    if not said:
        planned(folder, device=devices, options=options)
        return
    with pytest.raises(PipelineError) as caught:
        planned(folder, device=devices, options=options)
    assert str(caught.value).splitlines() == said


def test_options_of_tflite_are_looked_at_before_the_run() -> None:
    options = {"xnnpak": True, "tflite:CPU": {"delegate": 3}}
    faults = option_faults(options, ["tflite:CPU"], "tflite", "stage 'detector'")
    place = "stage 'detector', device 'tflite:CPU', options"
    assert [*map(str, faults)] == [
        f"{place}: Expected `object`, got `int` - at `$.delegate`.",
        f"{place}: there is no option 'xnnpak'. Did you mean 'xnnpack'?",
    ]


@pytest.mark.usefixtures("theirs")
def test_a_backend_of_somebody_elses_may_name_its_options(folder: Path) -> None:
    with pytest.raises(PipelineError, match=r"theirs:TPU', options: .* Did you mean 'speed'"):
        planned(folder, device="theirs:TPU", options={"sped": 1})
    planned(folder, device="theirs:TPU", options={"speed": 1})
    for device in ("NPU", "BAD"):  # one is not here, asking the other ends the child
        planned(folder, device=f"theirs:{device}", options={"sped": 1})


@pytest.mark.usefixtures("theirs")
@pytest.mark.parametrize("scope", ["theirs", "theirs:NPU"])
def test_a_misspelt_option_is_not_hidden_by_the_next_device(scope: str, folder: Path) -> None:
    """Where a runtime does not tell its options beforehand, its refusal tells."""
    with (
        pytest.raises(DeviceError) as caught,
        running(folder, device=["theirs:NPU", "onnxruntime:CPU"], options={scope: {"sped": 1}}),
    ):
        pass
    assert str(caught.value) == (
        "stage 'detector', device 'theirs:NPU', options: there is no option 'sped'. "
        "Did you mean 'speed'?"
    )


def test_an_option_that_another_device_may_know_is_a_refusal(folder: Path) -> None:
    devices = ["openvino:CPU", "openvino:NPU", "onnxruntime:CPU"]
    options = {"openvino": {"NPU_TURBO": True}}
    with running(folder, device=devices, options=options) as run:
        device = run.stage.context.report["device"]
    assert device["actual"] == "onnxruntime:CPU"
    assert "there is no option 'NPU_TURBO'" in device["refused"]["openvino:CPU"]


def test_looking_at_options_imports_no_runtime() -> None:
    code = (
        "import sys; from edgert.backends.option_schemas import faults_of; "
        "devices = ['onnxruntime:CPU', 'tflite:CPU', 'emulated:NPU']; "
        "assert len([*faults_of({'no': 1}, devices[:1], 'onnx', 'here')]) == 1; "
        "assert not [*faults_of({'arena': False, 'lanes': 2}, devices, 'onnx', 'here')]; "
        "assert len([*faults_of({'NUM_STREAM': 1}, ['openvino:CPU'], 'onnx', 'here')]) == 1; "
        "assert not {'onnxruntime', 'ai_edge_litert', 'openvino', 'onnx'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


@pytest.mark.parametrize(("balance", "count"), [([], "no"), (["CPU"], "one")])
def test_frames_are_not_shared_by_fewer_than_two_devices(balance: list[str], count: str) -> None:
    """An empty list is a fault, too: the frames would go to the CPU, which nobody named."""
    with pytest.raises(ValidationError, match=f"'balance' has {count} device. Name two or more"):
        read_as(InferOptions, {"model": "net", "balance": balance})

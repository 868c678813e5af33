"""What is said of an accelerator, by what the kernel shows and what the runtimes have."""

from __future__ import annotations

import subprocess
import sys

import pytest

from edgert.backends.survey import DeviceState, MissingRuntime, Runtime
from edgert.device.accelerators import Accelerator
from edgert.device.kinds import KINDS
from edgert.inventory import Finding, judge

NODE = "/dev/accel/accel0"
CPU = DeviceState("CPU", usable=True, proof="listed")
NPU = DeviceState("NPU", usable=True, proof="ran")


def kind(name: str):
    return next(each for each in KINDS if each.name == name)


def seen(name: str = "Intel NPU", node: str = NODE, **changes) -> Accelerator:
    whole = Accelerator(kind(name), node, "driver", "1.0", has_node=True, is_permitted=True)
    return whole._replace(**changes)


def openvino(*devices: DeviceState) -> Runtime:
    return Runtime("openvino", "openvino 2026.4", (CPU, *devices))


def one(accelerator: Accelerator, *runtimes: Runtime | MissingRuntime) -> Finding:
    (found,) = judge([accelerator], runtimes)
    return found


def test_a_device_that_its_runtime_has():
    found = one(seen(), openvino(NPU))
    assert (found.usable, found.by, found.reason, found.mend) == (True, ("openvino:NPU",), "", "")
    assert (found.kind, found.node, found.driver_version) == ("Intel NPU", NODE, "1.0")


def test_absence_is_never_presence():
    for runtimes in ((), (openvino(),), (MissingRuntime("openvino", "not installed", "mend"),)):
        found = one(seen(), *runtimes)
        assert (found.usable, found.by) == (False, ())
        assert found.reason
        assert found.mend


@pytest.mark.parametrize(
    ("changes", "reason", "mend"),
    [
        ({"node": "", "has_node": False}, "no node in /dev", "sudo modprobe intel_vpu"),
        ({"has_node": False}, f"{NODE} is not there", f"start it with --device {NODE}"),
        (
            {"is_permitted": False, "permission_mend": "Run: sudo usermod -aG render ana"},
            f"this user may not open {NODE}",
            "usermod -aG render",
        ),
    ],
)
def test_what_blocks_it_comes_before_the_runtime(changes, reason, mend):
    found = one(seen(**changes), openvino(NPU))
    assert found.usable is False
    assert reason in found.reason
    assert mend in found.mend


def test_a_runtime_that_is_missing():
    missing = MissingRuntime(
        "openvino", "it is not installed", "Run: pip install 'edgert[openvino]'"
    )
    found = one(seen(), missing)
    assert found.reason == "openvino: it is not installed"
    assert found.mend == missing.mend


def test_a_runtime_that_does_not_list_it():
    found = one(seen(), openvino())
    assert found.reason == "openvino 2026.4 does not list openvino:NPU"
    assert "intel-level-zero-npu" in found.mend


def test_a_runtime_that_lists_it_and_cannot_run_on_it():
    broken = DeviceState("NPU", usable=False, reason="firmware is too old", mend="Update it")
    found = one(seen(), openvino(broken))
    assert (found.usable, found.reason, found.mend) == (
        *(False, "openvino:NPU: firmware is too old"),
        "Update it",
    )


def test_no_backend_for_it():
    found = one(seen("Hailo", "/dev/hailo0"), openvino(NPU))
    assert (found.usable, found.reason) == (False, "no runtime of edgert uses it")
    assert "new-backend" in found.mend


def test_an_emulated_device_is_no_hardware():
    emulated = DeviceState("NPU", usable=True, proof="ran", emulated=True)
    assert one(seen(), openvino(emulated)).usable is False
    assert one(seen(), Runtime("emulated", "emulated 1", (emulated,))).usable is False


def test_two_gpus_and_both_are_listed():
    gpus = [seen("Intel GPU", f"/dev/dri/renderD{n}") for n in (128, 129)]
    listed = [DeviceState(f"GPU.{n}", usable=True, proof="ran") for n in (0, 1)]
    found = judge(gpus, [openvino(*listed)])
    assert [each.usable for each in found] == [True, True]
    assert found[0].by == ("openvino:GPU.0", "openvino:GPU.1")


def test_two_gpus_of_which_one_is_listed_are_not_known():
    gpus = [seen("Intel GPU", f"/dev/dri/renderD{n}") for n in (128, 129)]
    found = judge(gpus, [openvino(DeviceState("GPU", usable=True, proof="ran"))])
    assert [each.usable for each in found] == [None, None]
    assert "stands for 1 of the 2" in found[0].reason
    closed = gpus[1]._replace(is_permitted=False, permission_mend="mend")
    found = judge([gpus[0], closed], [openvino(DeviceState("GPU", usable=True, proof="ran"))])
    assert [each.usable for each in found] == [True, False]


def test_two_names_for_one_card_are_not_two_cards():
    names = [DeviceState(name, usable=True, proof="ran") for name in ("CUDA", "Tensorrt")]
    runtime = Runtime("onnxruntime", "onnxruntime 1", (CPU, *names))
    cards = [seen("NVIDIA GPU", f"/dev/nvidia{n}") for n in (0, 1)]
    assert judge(cards[:1], [runtime])[0].by == ("onnxruntime:CUDA", "onnxruntime:Tensorrt")
    assert [each.usable for each in judge(cards, [runtime])] == [None, None]


def test_every_kind_says_what_is_missing():
    for each in KINDS:
        found = one(seen(each.name, "/dev/x"))
        assert found.usable is False
        assert found.mend
        assert each.driver
        assert bool(each.uses) == bool(each.library)


def test_whoever_asks_loads_no_runtime():
    code = (
        "import sys; from edgert import inventory; inventory.take();"
        "print({'openvino', 'onnxruntime', 'onnx', 'cv2', 'ai_edge_litert'} & set(sys.modules))"
    )
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120)
    assert done.stdout == "set()\n"

"""What ``edgert devices`` claims holds: on every machine, of every runtime."""

from __future__ import annotations

from pathlib import Path

import pytest

from edgert import inventory
from edgert.backends import registry
from edgert.backends.survey import Runtime
from edgert.device import accelerators
from tests.unit.device import trees

# Ways to a GPU that edgert does not tell of: Jetson, WSL.
UNKNOWN = ("nvhost*", "nvgpu*", "dxg")


@pytest.fixture(scope="module")
def taken() -> inventory.Inventory:
    return inventory.take()


def of(taken: inventory.Inventory, name: str) -> Runtime:
    if not registry.is_installed(name):
        pytest.skip(f"{name} is not installed")
    (found,) = [runtime for runtime in taken.runtimes if runtime.name == name]
    assert isinstance(found, Runtime), found
    return found


@pytest.mark.parametrize("name", ["openvino", "onnxruntime"])
def test_the_cpu_is_listed(taken, name):
    usable = {device.device for device in of(taken, name).devices if device.usable}
    assert "CPU" in usable


def test_every_backend_has_a_line(taken):
    assert [runtime.name for runtime in taken.runtimes] == list(registry.names())


def test_what_is_not_usable_says_why_and_what_to_do(taken):
    listed = [d for r in taken.runtimes if isinstance(r, Runtime) for d in r.devices]
    for each in (*listed, *taken.accelerators):
        assert bool(each.reason) != (each.usable is True)
    assert all(each.mend for each in taken.accelerators if each.usable is False)


def test_an_npu_that_no_runtime_lists_is_not_claimed(taken, tmp_path):
    of(taken, "openvino")
    if any(each.kind == "Intel NPU" for each in taken.accelerators):
        pytest.skip("this machine has an Intel NPU")
    trees.node(tmp_path, "accel/accel0", "0000:00:0b.0", "intel_vpu", "accel")
    seen = accelerators.find(tmp_path, lambda _: True)
    (found,) = inventory.judge(seen, taken.runtimes)
    assert (found.usable, found.by) == (False, ())
    assert found.reason.endswith("does not list openvino:NPU")


def test_no_accelerator_is_claimed_that_the_kernel_does_not_show(taken):
    claimed = {
        f"{runtime.name}:{device.device}"
        for runtime in taken.runtimes
        if isinstance(runtime, Runtime)
        for device in runtime.devices
        if device.usable and not device.emulated and device.device != "CPU"
    }
    unknown = [node for pattern in UNKNOWN for node in Path("/dev").glob(pattern)]
    if taken.accelerators or unknown:
        pytest.skip("this machine may have an accelerator")
    assert claimed == set()

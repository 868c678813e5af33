"""A profile beside what a machine really has: it never says that something is here."""

from __future__ import annotations

from edgert.backends.survey import DeviceState, MissingRuntime, Runtime
from edgert.device.cpu import Cpu
from edgert.inventory import Finding, Inventory
from edgert.profiles.find import SHIPPED
from edgert.profiles.load import load_profile
from edgert.profiles.presence import Presence, presence

CPU = Cpu("Some CPU", "GenuineIntel", "", "x86_64", (), 4, (0, 1), {}, None, 8 << 30, None)
ULTRA = load_profile(SHIPPED / "intel-core-ultra.yaml")
EMULATED = load_profile(SHIPPED / "emulated-npu.yaml")
STAND_IN = Runtime("emulated", "emulated 1", (DeviceState("NPU", usable=True, emulated=True),))


def found(*findings: Finding, runtimes=()) -> Inventory:
    return Inventory(CPU, runtimes, findings)


def test_nothing_is_here_that_the_kernel_does_not_show() -> None:
    none = "the kernel shows none"
    assert presence(ULTRA, found(runtimes=(STAND_IN,))) == (
        Presence("npu", "no", reason=none),
        Presence("gpu", "no", reason=none),
    )


def test_what_is_seen_is_not_yet_usable() -> None:
    node = ("/dev/accel/accel0", "intel_vpu", "")
    npu = Finding("Intel NPU", *node, usable=False, reason="no library", mend="Install it")
    gpu = Finding("Intel GPU", *node, usable=True, by=("openvino:GPU",))
    other = Finding("Hailo", *node, usable=True, by=("hailo:X",))
    assert presence(ULTRA, found(npu, gpu, other)) == (
        Presence("npu", "unusable", (), "no library", "Install it"),
        Presence("gpu", "yes", ("openvino:GPU",)),
    )
    unsure = Finding("Intel NPU", *node, usable=None, reason="one of two")
    assert presence(ULTRA, found(unsure))[0] == Presence("npu", "unknown", (), "one of two")


def test_a_stand_in_is_called_one() -> None:
    missing = MissingRuntime("tflite", "it is not installed", "Install it")
    here = presence(EMULATED, found(runtimes=(missing, STAND_IN)))
    assert here == (Presence("npu", "emulated", ("emulated:NPU",)),)
    assert presence(EMULATED, found())[0].here == "no"

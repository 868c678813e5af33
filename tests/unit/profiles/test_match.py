"""Which profile a recorded machine is given, and why."""

from __future__ import annotations

from pathlib import Path

import pytest

from edgert.profiles.choose import choose, load_all
from edgert.profiles.find import SHIPPED
from edgert.profiles.load import load_match, load_profile
from edgert.profiles.machine import look
from edgert.profiles.match import pick
from edgert.profiles.spec import Match
from tests.unit.device import trees

ARM_CPU = "processor\t: 0\nCPU implementer\t: 0x41\nCPU part\t: 0xd0b\n"
X86_CPU = "processor\t: 0\nvendor_id\t: GenuineIntel\nmodel name\t: Some CPU\n"
COMPATIBLE = "sys/firmware/devicetree/base/compatible"
CORES = "sys/devices/system/cpu/present"


def every() -> dict[Path, Match | None]:
    return {profile.path: profile.spec.match for profile in load_all()}


def pci(identity: str) -> dict[str, str]:
    vendor, device = identity.split(":")
    folder = "sys/bus/pci/devices/0000:00:0b.0"
    return {f"{folder}/vendor": f"0x{vendor}", f"{folder}/device": f"0x{device}"}


def usb(identity: str) -> dict[str, str]:
    vendor, product = identity.split(":")
    folder = "sys/bus/usb/devices/1-1"
    return {f"{folder}/idVendor": vendor, f"{folder}/idProduct": product}


PI = {COMPATIBLE: "raspberrypi,5-model-b\0brcm,bcm2712\0"}
MACHINES = [
    ("x86_64", {}, "generic-x86-64", ("x86_64 CPU",)),
    ("aarch64", {}, "generic-aarch64", ("aarch64 CPU",)),
    ("x86_64", pci("8086:7d1d"), "intel-core-ultra", ("x86_64 CPU", "8086:7d1d on PCI")),
    ("x86_64", pci("8086:643e"), "intel-core-ultra", ("x86_64 CPU", "8086:643e on PCI")),
    # Panther Lake: another NPU, of which the profile says nothing.
    ("x86_64", pci("8086:b03e"), "generic-x86-64", ("x86_64 CPU",)),
    ("aarch64", PI, "generic-aarch64", ("aarch64 CPU",)),
    (
        "aarch64",
        {**PI, **usb("18d1:9302")},
        "raspberry-pi-5-coral",
        ("aarch64 CPU", "device tree 'raspberrypi,5-model-b'", "Coral Edge TPU (USB)"),
    ),
    # The stick in another board.
    ("aarch64", usb("18d1:9302"), "generic-aarch64", ("aarch64 CPU",)),
    (
        "aarch64",
        {COMPATIBLE: "radxa,rock-5a\0rockchip,rk3588s\0"},
        "rk3588",
        ("aarch64 CPU", "device tree 'rockchip,rk3588s'"),
    ),
    (
        "aarch64",
        {COMPATIBLE: "fsl,imx93-11x11-evk\0fsl,imx93\0"},
        "imx93",
        ("aarch64 CPU", "device tree 'fsl,imx93'"),
    ),
    (
        "aarch64",
        {COMPATIBLE: "qcom,qcs6490-rb3gen2\0qcom,qcm6490\0"},
        "qcs6490",
        ("aarch64 CPU", "device tree 'qcom,qcm6490'"),
    ),
]


@pytest.mark.parametrize(("architecture", "files", "name", "reasons"), MACHINES)
def test_a_machine_is_given_its_profile(
    tmp_path: Path, architecture: str, files: dict[str, str], name: str, reasons: tuple[str, ...]
) -> None:
    cpu = X86_CPU if architecture == "x86_64" else ARM_CPU
    root = trees.write(tmp_path / "root", {"proc/cpuinfo": cpu, **files})
    picked, why = pick(every(), look(root, architecture))
    assert picked is not None
    assert (picked.stem, why) == (name, reasons)


def test_an_unknown_architecture_is_given_none(tmp_path: Path) -> None:
    machine = look(tmp_path, "riscv64")
    assert pick(every(), machine) == (None, ())


RULES = [
    ("board: [Example*]", {"sys/class/dmi/id/board_vendor": "Example Ltd"}),
    ('cpu: ["Some *"]', {}),
    ('usb: ["1234:abcd"]', usb("1234:abcd")),
    ("accelerators: [Hailo]", {"dev/hailo0": ""}),
]


@pytest.mark.parametrize(("rule", "files"), RULES)
def test_every_rule_must_hold_and_ones_own_profile_goes_first(
    tmp_path: Path, write, rule: str, files: dict[str, str]
) -> None:
    write("mine", f"match: {{source: manual, architecture: [x86_64], {rule}}}\n")
    root = trees.write(tmp_path / "root", {"proc/cpuinfo": X86_CPU, **files})
    mine, why = pick(every(), look(root, "x86_64"))
    assert mine is not None
    assert (mine.stem, len(why)) == ("mine", 2)
    bare = trees.write(tmp_path / "bare", {"proc/cpuinfo": "processor\t: 0\n"})
    other, _ = pick(every(), look(bare, "x86_64"))
    assert other == SHIPPED / "generic-x86-64.yaml"


def test_what_the_kernel_says_of_the_cores(tmp_path: Path) -> None:
    root = trees.write(tmp_path, {CORES: "0-7", "proc/cpuinfo": ARM_CPU})
    assert look(root, "aarch64").cores == frozenset(range(8))
    assert look(tmp_path / "none", "aarch64").cores == frozenset()


@pytest.mark.parametrize("file", sorted(SHIPPED.glob("*.yaml")), ids=lambda file: file.stem)
def test_what_is_read_quickly_is_what_stands_there(file: Path) -> None:
    assert load_match(file) == load_profile(file).spec.match


def test_the_one_that_is_chosen_is_whole(tmp_path: Path) -> None:
    board = {COMPATIBLE: "fsl,imx93\0", "proc/cpuinfo": ARM_CPU}
    chosen = choose(root=trees.write(tmp_path, board), architecture="aarch64")
    assert chosen.profile is not None
    assert chosen.profile.spec.accelerators["npu"].device == "tflite:ethosu"
    assert chosen.why == "picked: aarch64 CPU, device tree 'fsl,imx93'"
    nothing = choose(root=tmp_path / "none", architecture="riscv64")
    assert (nothing.profile, nothing.why) == (None, "no profile matches this machine")

"""Accelerators in trees of /dev and /sys as kernels show them."""

from __future__ import annotations

import pytest

from edgert.device import accelerators
from tests.unit.device import trees


def find(root, *, permitted: bool = True):
    return accelerators.find(root, lambda _: permitted)


def seen(root) -> list[tuple[str, str, str]]:
    return [(each.kind.name, each.node, each.driver) for each in find(root)]


def test_a_machine_without_any(tmp_path):
    assert find(tmp_path) == ()
    trees.node(tmp_path, "dri/card0")
    trees.node(tmp_path, "null")
    assert find(tmp_path) == ()


@pytest.mark.parametrize(
    ("name", "kind", "driver", "expected"),
    [
        ("accel/accel0", "accel", "intel_vpu", "Intel NPU"),
        ("accel/accel0", "accel", "amdxdna", "AMD NPU"),
        ("accel/accel0", "accel", "habanalabs", "accelerator"),
        ("dri/renderD128", "drm", "i915", "Intel GPU"),
        ("dri/renderD128", "drm", "xe", "Intel GPU"),
        ("dri/renderD129", "drm", "amdgpu", "AMD GPU"),
        ("dri/renderD129", "drm", "RKNPU", "Rockchip NPU"),
        ("dri/renderD128", "drm", "panthor", "GPU"),
        ("dri/renderD128", "drm", "virtio_gpu", "GPU"),
        ("dri/renderD128", "drm", "nvidia", "NVIDIA GPU"),
        ("apex_0", "apex", "apex", "Coral Edge TPU (PCIe)"),
        ("hailo0", "hailo_chardev", "hailo", "Hailo"),
    ],
)
def test_the_driver_tells_what_a_node_is(tmp_path, name, kind, driver, expected):
    trees.node(tmp_path, name, "0000:00:0b.0", driver, kind)
    assert seen(tmp_path) == [(expected, f"/dev/{name}", driver)]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("galcore", "VeriSilicon GPU or NPU"),
        ("ethosu0", "Arm Ethos-U"),
        ("rknpu", "Rockchip NPU"),
        ("fastrpc-cdsp", "Qualcomm Hexagon"),
        ("nvidia0", "NVIDIA GPU"),
        ("mali0", "Arm Mali GPU"),
        ("kgsl-3d0", "Qualcomm Adreno GPU"),
    ],
)
def test_a_node_of_a_name_of_its_own(tmp_path, name, expected):
    trees.node(tmp_path, name)
    assert seen(tmp_path) == [(expected, f"/dev/{name}", "")]


@pytest.mark.parametrize("name", ["nvidiactl", "nvidia-uvm", "fastrpc-cdsp-secure", "fastrpc-adsp"])
def test_nodes_that_are_no_accelerators_of_their_own(tmp_path, name):
    trees.node(tmp_path, name)
    assert find(tmp_path) == ()


def test_a_card_with_two_nodes_is_one(tmp_path):
    trees.node(tmp_path, "nvidia0")
    trees.node(tmp_path, "dri/renderD128", "0000:01:00.0", "nvidia", "drm")
    trees.write(tmp_path, {"sys/module/nvidia/version": "550.90.07"})
    (found,) = find(tmp_path)
    assert (found.node, found.driver) == ("/dev/nvidia0", "nvidia")
    assert found.driver_version == "550.90.07"


def test_several_are_all_named(tmp_path):
    trees.node(tmp_path, "dri/renderD128", "0000:00:02.0", "i915", "drm")
    trees.node(tmp_path, "dri/renderD129", "0000:03:00.0", "xe", "drm")
    trees.node(tmp_path, "accel/accel0", "0000:00:0b.0", "intel_vpu", "accel")
    assert [name for name, _, _ in seen(tmp_path)] == ["Intel NPU", "Intel GPU", "Intel GPU"]


def test_a_container_without_the_node_still_sees_the_device(tmp_path):
    trees.class_entry(tmp_path, "accel0", "0000:00:0b.0", "intel_vpu", "accel")
    (found,) = find(tmp_path)
    assert (found.kind.name, found.node) == ("Intel NPU", "/dev/accel/accel0")
    assert not found.has_node
    assert not found.is_permitted


def pci(root, address: str, vendor: str, device: str) -> None:
    folder = f"sys/devices/{address}"
    trees.write(root, {f"{folder}/vendor": vendor, f"{folder}/device": device})
    trees.link(root, f"sys/bus/pci/devices/{address}", folder)


@pytest.mark.parametrize(
    ("vendor", "device", "expected"),
    [
        ("0x8086", "0x7d1d", "Intel NPU"),
        ("0x8086", "0x643e", "Intel NPU"),
        ("0x1ac1", "0x089a", "Coral Edge TPU (PCIe)"),
        ("0x1e60", "0x2864", "Hailo"),
    ],
)
def test_a_card_without_its_driver(tmp_path, vendor, device, expected):
    pci(tmp_path, "0000:00:0b.0", vendor, device)
    assert seen(tmp_path) == [(expected, "", "")]


def test_a_card_with_its_driver_is_told_once(tmp_path):
    pci(tmp_path, "0000:00:0b.0", "0x8086", "0x7d1d")
    trees.node(tmp_path, "accel/accel0", "0000:00:0b.0", "intel_vpu", "accel")
    assert seen(tmp_path) == [("Intel NPU", "/dev/accel/accel0", "intel_vpu")]


def test_other_cards_are_none_of_ours(tmp_path):
    pci(tmp_path, "0000:00:1f.6", "0x8086", "0x15fb")
    assert find(tmp_path) == ()


@pytest.mark.parametrize("identity", [("1a6e", "089a"), ("18d1", "9302")])
def test_a_coral_on_usb(tmp_path, identity):
    folder = "sys/bus/usb/devices/2-1"
    names = ("idVendor", "idProduct", "busnum", "devnum")
    values = zip(names, (*identity, "2", "13"), strict=True)
    trees.write(tmp_path, {f"{folder}/{name}": value for name, value in values})
    trees.write(tmp_path, {"sys/bus/usb/devices/2-1:1.0/bInterfaceClass": "ff"})
    trees.node(tmp_path, "bus/usb/002/013")
    (found,) = find(tmp_path)
    assert (found.kind.name, found.node) == ("Coral Edge TPU (USB)", "/dev/bus/usb/002/013")
    assert found.has_node


def test_a_rockchip_npu_whose_driver_made_no_node(tmp_path):
    trees.link(tmp_path, "sys/bus/platform/drivers/RKNPU/fdab0000.npu", "sys/devices/npu")
    trees.write(tmp_path, {"sys/bus/platform/drivers/RKNPU/uevent": ""})
    assert seen(tmp_path) == [("Rockchip NPU", "", "RKNPU")]


def test_a_rockchip_npu_with_a_node_is_told_once(tmp_path):
    trees.link(tmp_path, "sys/bus/platform/drivers/RKNPU/fdab0000.npu", "sys/devices/npu")
    trees.node(tmp_path, "dri/renderD129", "npu", "RKNPU", "drm")
    assert seen(tmp_path) == [("Rockchip NPU", "/dev/dri/renderD129", "RKNPU")]


def test_a_node_that_this_user_may_not_open(tmp_path):
    trees.node(tmp_path, "accel/accel0", "0000:00:0b.0", "intel_vpu", "accel")
    (found,) = find(tmp_path, permitted=False)
    assert found.has_node
    assert not found.is_permitted
    assert found.permission_mend
    (found,) = find(tmp_path)
    assert (found.is_permitted, found.permission_mend) == (True, "")

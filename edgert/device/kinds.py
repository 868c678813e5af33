"""The accelerators that are known: how they show, and what edgert would use them with.

Only what the drivers' own sources and udev rules say; what is not certain is left out.
"""

from __future__ import annotations

import fnmatch
from typing import NamedTuple


class Kind(NamedTuple):
    """One kind of accelerator.

    Attributes:
        name: What it is called.
        driver: What brings its node into /dev.
        uses: ``runtime:DEVICE`` of edgert that runs models on it; empty where there is none.
        library: What a runtime that is here still needs in order to list it.
        nodes: Patterns of its nodes below /dev.
        drivers: Names of its driver, in lower case: they tell render nodes and ``accel`` nodes
            apart, which many kinds share.
        pci: ``vendor:device`` ids.
        usb: ``vendor:product`` ids.
    """

    name: str
    driver: str
    uses: tuple[str, ...] = ()
    library: str = ""
    nodes: tuple[str, ...] = ()
    drivers: tuple[str, ...] = ()
    pci: tuple[str, ...] = ()
    usb: tuple[str, ...] = ()


_GPU_DELEGATE = "Build libtensorflowlite_gpu_delegate.so from TensorFlow Lite's sources"
_EDGE_TPU_LIBRARY = "Install libedgetpu1-std (libedgetpu.so.1)"
# The last two are for whatever else has such a node.
KINDS = (
    Kind(
        "Intel NPU",
        "Load the driver: sudo modprobe intel_vpu (Linux 6.3 or later)",
        uses=("openvino:NPU",),
        library="Install intel-driver-compiler-npu, intel-fw-npu and intel-level-zero-npu",
        drivers=("intel_vpu",),
        # Meteor Lake, Arrow Lake, Lunar Lake, Panther Lake.
        pci=("8086:7d1d", "8086:ad1d", "8086:643e", "8086:b03e"),
    ),
    Kind(
        "AMD NPU",
        "Load the driver: sudo modprobe amdxdna",
        uses=("onnxruntime:VitisAI",),
        library="Install an ONNX Runtime with the VitisAI provider (Ryzen AI Software)",
        drivers=("amdxdna",),
    ),
    Kind(
        "Rockchip NPU",
        "Start a kernel of the vendor's, with the rknpu driver",
        nodes=("rknpu",),
        drivers=("rknpu",),
    ),
    Kind(
        "Intel GPU",
        "Load the driver: sudo modprobe i915 (or xe)",
        uses=("openvino:GPU",),
        library="Install Intel's compute runtime: intel-opencl-icd",
        drivers=("i915", "xe"),
    ),
    Kind(
        "AMD GPU",
        "Load the driver: sudo modprobe amdgpu",
        uses=("onnxruntime:MIGraphX", "onnxruntime:ROCM"),
        library="Install an ONNX Runtime with the MIGraphX provider",
        drivers=("amdgpu",),
    ),
    Kind(
        "NVIDIA GPU",
        "Install NVIDIA's driver",
        uses=("onnxruntime:CUDA", "onnxruntime:Tensorrt"),
        library="Install onnxruntime-gpu in place of onnxruntime, with CUDA and cuDNN",
        nodes=("nvidia[0-9]*",),
        drivers=("nvidia",),
    ),
    Kind(
        "Coral Edge TPU (PCIe)",
        "Install gasket-dkms, then: sudo modprobe apex",
        uses=("tflite:edgetpu",),
        library=_EDGE_TPU_LIBRARY,
        nodes=("apex_[0-9]*",),
        drivers=("apex",),
        pci=("1ac1:089a",),
    ),
    Kind(
        "Coral Edge TPU (USB)",
        "Plug it in anew",
        uses=("tflite:edgetpu",),
        library=_EDGE_TPU_LIBRARY,
        # The first until its firmware is loaded, the second from then on.
        usb=("1a6e:089a", "18d1:9302"),
    ),
    Kind(
        "Hailo",
        "Install HailoRT's PCIe driver, then: sudo modprobe hailo_pci",
        nodes=("hailo[0-9]*",),
        drivers=("hailo", "hailo_pci", "hailo1x_pci"),
        pci=("1e60:2864",),
    ),
    Kind(
        # Boards without an NPU have the node too, for their GPU.
        "VeriSilicon GPU or NPU",
        "Load the driver: sudo modprobe galcore",
        uses=("tflite:vx",),
        library="Install the vendor's TFLite delegate (libvx_delegate.so)",
        nodes=("galcore",),
        drivers=("galcore",),
    ),
    Kind(
        "Arm Ethos-U",
        "Load the driver: sudo modprobe ethosu",
        uses=("tflite:ethosu",),
        library="Install the vendor's TFLite delegate (libethosu_delegate.so)",
        nodes=("ethosu[0-9]*",),
        drivers=("ethosu",),
    ),
    Kind(
        "Qualcomm Hexagon",
        "Start a kernel with the fastrpc driver",
        uses=("onnxruntime:QNN",),
        library="Install an ONNX Runtime with the QNN provider (onnxruntime-qnn)",
        # A node whose name ends in -secure is the same processor again, for signed code.
        nodes=("fastrpc-cdsp", "fastrpc-cdsp[0-9]"),
        drivers=("fastrpc",),
    ),
    Kind(
        "Arm Mali GPU",
        "Start a kernel with Arm's mali driver",
        uses=("tflite:gpu",),
        library=_GPU_DELEGATE,
        nodes=("mali[0-9]*",),
    ),
    Kind(
        "Qualcomm Adreno GPU",
        "Start a kernel with the kgsl driver",
        uses=("tflite:gpu",),
        library=_GPU_DELEGATE,
        nodes=("kgsl-3d0",),
    ),
    Kind("GPU", "Load its driver", nodes=("dri/renderD*",)),
    Kind("accelerator", "Load its driver", nodes=("accel/accel*",)),
)


def kind_of(node: str, driver: str) -> Kind | None:
    """Return the kind of a node below /dev; None where it is no accelerator's.

    Args:
        node: Its path below /dev.
        driver: Its driver; empty where that is not known.
    """
    for kind in KINDS:
        if driver.lower() in kind.drivers or any(fnmatch.fnmatch(node, p) for p in kind.nodes):
            return kind
    return None

"""The processor: its name, what it can do that matters to inference, and how much of it is ours."""

from __future__ import annotations

import platform
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import msgspec

from edgert.device import cgroup, cores

# Words of /proc/cpuinfo that a runtime's kernels ask for, narrow ones first.
FEATURES = (
    *("f16c", "avx2", "avx_vnni", "avx512f", "avx512_vnni", "avx512_bf16", "amx_bf16", "amx_int8"),
    *("asimd", "asimdhp", "asimddp", "i8mm", "bf16", "sve", "sve2"),
)
# AArch64 names its cores by number: (implementer, part), as the kernel's asm/cputype.h has them.
_ARM = 0x41
_IMPLEMENTERS = {_ARM: "ARM", 0x42: "Broadcom", 0x4E: "NVIDIA", 0x51: "Qualcomm", 0x61: "Apple"}
_PARTS = {
    (_ARM, 0xD03): "Cortex-A53",
    (_ARM, 0xD04): "Cortex-A35",
    (_ARM, 0xD05): "Cortex-A55",
    (_ARM, 0xD07): "Cortex-A57",
    (_ARM, 0xD08): "Cortex-A72",
    (_ARM, 0xD09): "Cortex-A73",
    (_ARM, 0xD0A): "Cortex-A75",
    (_ARM, 0xD0B): "Cortex-A76",
    (_ARM, 0xD0C): "Neoverse-N1",
    (_ARM, 0xD0D): "Cortex-A77",
    (_ARM, 0xD40): "Neoverse-V1",
    (_ARM, 0xD41): "Cortex-A78",
    (_ARM, 0xD42): "Cortex-A78AE",
    (_ARM, 0xD44): "Cortex-X1",
    (_ARM, 0xD46): "Cortex-A510",
    (_ARM, 0xD47): "Cortex-A710",
    (_ARM, 0xD49): "Neoverse-N2",
}


class Cpu(msgspec.Struct, frozen=True):
    """The processor, and how much of it this process has.

    Attributes:
        model: Name of the processor, or of its core types; ``unknown`` where nothing says it.
        vendor: Who made it; ``unknown`` where nothing says it.
        board: Name of the board, where the firmware gives one.
        architecture: As ``uname -m`` has it.
        features: Those of ``FEATURES`` that every core has.
        cores: Number of cores that are online.
        allowed: Cores this process may run on.
        classes: Cores of each class; empty where all are alike.
        quota_cores: How many cores' worth of time the control groups leave; None for no limit.
        memory_bytes: Memory of the machine.
        memory_limit_bytes: What the control groups leave of it; None for no limit.
    """

    model: str
    vendor: str
    board: str
    architecture: str
    features: tuple[str, ...]
    cores: int
    allowed: tuple[int, ...]
    classes: dict[str, tuple[int, ...]]
    quota_cores: float | None
    memory_bytes: int
    memory_limit_bytes: int | None


def read(
    root: Path = Path("/"),
    *,
    allowed: tuple[int, ...] | None = None,
    architecture: str | None = None,
) -> Cpu:
    """Return what this machine's processor is.

    Args:
        root: Where /proc and /sys are found.
        allowed: Cores this process may use; asked of the kernel where it is not given.
        architecture: As ``uname -m`` has it; asked of the kernel where it is not given.
    """
    blocks = list(_blocks(_text(root / "proc/cpuinfo")))
    limit = cgroup.memory_limit(root)
    return Cpu(
        model=_model(blocks),
        vendor=_vendor(blocks),
        board=_text(root / "sys/firmware/devicetree/base/model").strip("\0 \n"),
        architecture=architecture or platform.machine(),
        features=_features(blocks),
        cores=len(blocks),
        allowed=cores.allowed() if allowed is None else allowed,
        classes=cores.classes(root / "sys"),
        quota_cores=cgroup.cpu_quota(root),
        memory_bytes=_memory_bytes(root),
        memory_limit_bytes=limit.limit_bytes if limit else None,
    )


def _blocks(cpuinfo: str) -> Iterator[dict[str, str]]:
    """Yield the lines ``key : value`` of each core; what stands after the last core is no core."""
    for text in cpuinfo.split("\n\n"):
        pairs = (line.partition(":") for line in text.splitlines())
        block = {key.strip(): value.strip() for key, _, value in pairs}
        if "processor" in block:
            yield block


def _model(blocks: list[dict[str, str]]) -> str:
    """Return the name it has, or as on ARM the number and types of its cores."""
    named = next((block["model name"] for block in blocks if "model name" in block), "")
    if named or not blocks:
        return named or "unknown"
    kinds = Counter(_core_type(block) for block in blocks)
    return " + ".join(f"{count}x {kind}" for kind, count in kinds.items())


def _core_type(block: dict[str, str]) -> str:
    implementer, part = _number(block, "CPU implementer"), _number(block, "CPU part")
    named = _PARTS.get((implementer, part))
    return named or f"core of implementer {implementer:#x}, part {part:#x}"


def _vendor(blocks: list[dict[str, str]]) -> str:
    for block in blocks:
        if "vendor_id" in block:
            return block["vendor_id"]
        if "CPU implementer" in block:
            return _IMPLEMENTERS.get(_number(block, "CPU implementer"), "unknown")
    return "unknown"


def _features(blocks: list[dict[str, str]]) -> tuple[str, ...]:
    """Return what all cores have: a thread may run on any of them."""
    each = [set((block.get("flags") or block.get("Features", "")).split()) for block in blocks]
    common = set[str]().union(*each[:1]).intersection(*each)
    return tuple(name for name in FEATURES if name in common)


def _number(block: dict[str, str], key: str) -> int:
    try:
        return int(block.get(key, ""), 0)
    except ValueError:
        return 0


def _memory_bytes(root: Path) -> int:
    for line in _text(root / "proc/meminfo").splitlines():
        name, _, value = line.partition(":")
        if name == "MemTotal":
            return int(value.split()[0]) * 1024
    return 0


def _text(file: Path) -> str:
    try:
        return file.read_text(errors="replace")
    except OSError:
        return ""

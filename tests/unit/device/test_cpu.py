"""Processors as /proc/cpuinfo of x86-64 and AArch64 kernels shows them."""

from __future__ import annotations

import pytest

from edgert.device import cpu
from tests.unit.device import trees

A55_FEATURES = (
    "fp asimd evtstrm aes pmull sha1 sha2 crc32 atomics fphp asimdhp cpuid asimdrdm lrcpc dcpop "
    "asimddp"
)
A55, A76 = "0xd05", "0xd0b"


def x86(number: int, vendor: str, model: str, flags: str) -> str:
    return (
        f"processor\t: {number}\nvendor_id\t: {vendor}\ncpu family\t: 6\nmodel name\t: {model}\n"
        f"fpu\t\t: yes\nflags\t\t: fpu sse2 {flags}\nbugs\t\t: spectre_v1\npower management:\n"
    )


def arm(number: int, part: str, features: str = A55_FEATURES) -> str:
    return (
        f"processor\t: {number}\nBogoMIPS\t: 48.00\nFeatures\t: {features}\n"
        f"CPU implementer\t: 0x41\nCPU architecture: 8\nCPU variant\t: 0x2\nCPU part\t: {part}\n"
        "CPU revision\t: 0\n"
    )


def read(root, cpuinfo: list[str], files: dict[str, object] | None = None, architecture="aarch64"):
    trees.write(root, {"proc/cpuinfo": "\n".join(cpuinfo), **(files or {})})
    return cpu.read(root, allowed=(0, 1), architecture=architecture)


def test_a_hybrid_of_intel(tmp_path):
    model = "Intel(R) Core(TM) Ultra 7 155H"
    blocks = [x86(n, "GenuineIntel", model, "f16c avx avx2 avx_vnni") for n in range(6)]
    files = {
        "sys/devices/cpu_core/cpus": "0-3",
        "sys/devices/cpu_atom/cpus": "4-5",
        "proc/meminfo": "MemTotal:       32514048 kB\nMemFree: 1 kB",
    }
    found = read(tmp_path, blocks, files, "x86_64")
    assert (found.model, found.vendor, found.board) == (model, "GenuineIntel", "")
    assert found.features == ("f16c", "avx2", "avx_vnni")
    assert (found.cores, found.allowed) == (6, (0, 1))
    assert found.classes == {"p-cores": (0, 1, 2, 3), "e-cores": (4, 5)}
    assert found.memory_bytes == 32514048 * 1024
    assert (found.quota_cores, found.memory_limit_bytes) == (None, None)


def test_a_processor_of_amd(tmp_path):
    flags = "avx f16c avx2 avx512f avx512_bf16 avx512_vnni"
    blocks = [x86(n, "AuthenticAMD", "AMD Ryzen 7 7840U", flags) for n in range(2)]
    found = read(tmp_path, blocks, architecture="x86_64")
    assert found.vendor == "AuthenticAMD"
    assert found.features == ("f16c", "avx2", "avx512f", "avx512_vnni", "avx512_bf16")
    assert found.classes == {}


def test_a_raspberry_pi_5(tmp_path):
    board = "Raspberry Pi 5 Model B Rev 1.0"
    last = f"Revision\t: d04170\nSerial\t\t: 0123456789abcdef\nModel\t\t: {board}\n"
    files = {"sys/firmware/devicetree/base/model": f"{board}\0"}
    found = read(tmp_path, [*(arm(n, A76) for n in range(4)), last], files)
    assert (found.model, found.vendor, found.board) == ("4x Cortex-A76", "ARM", board)
    assert found.features == ("asimd", "asimdhp", "asimddp")
    assert found.cores == 4


def test_an_rk3588_has_two_kinds_of_cores(tmp_path):
    files = {
        f"sys/devices/system/cpu/cpu{n}/cpu_capacity": 530 if n < 4 else 1024 for n in range(8)
    }
    found = read(tmp_path, [arm(n, A55 if n < 4 else A76) for n in range(8)], files)
    assert found.model == "4x Cortex-A55 + 4x Cortex-A76"
    assert found.classes == {"p-cores": (4, 5, 6, 7), "e-cores": (0, 1, 2, 3)}


def test_an_imx93(tmp_path):
    found = read(tmp_path, [arm(0, A55), arm(1, A55)])
    assert (found.model, found.classes) == ("2x Cortex-A55", {})


def test_features_are_those_of_every_core(tmp_path):
    with_sve, without = f"{A55_FEATURES} sve i8mm bf16", f"{A55_FEATURES} i8mm"
    found = read(tmp_path, [arm(0, A55, with_sve), arm(1, A76, without)])
    assert found.features == ("asimd", "asimdhp", "asimddp", "i8mm")


def test_a_core_without_a_known_name_is_given_by_its_numbers(tmp_path):
    assert read(tmp_path, [arm(0, "0xfff")]).model == "1x core of implementer 0x41, part 0xfff"


@pytest.mark.parametrize("cpuinfo", [[], ["nonsense"], ["processor\t: 0\n"]])
def test_what_says_nothing_stays_unknown(tmp_path, cpuinfo):
    found = read(tmp_path, cpuinfo)
    assert (found.vendor, found.features) == ("unknown", ())


def test_nothing_at_all_is_no_crash(tmp_path):
    found = cpu.read(tmp_path)
    assert (found.model, found.cores, found.memory_bytes) == ("unknown", 0, 0)
    assert found.allowed


def test_limits_of_the_control_group(tmp_path):
    files = {
        "proc/self/mountinfo": "29 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw",
        "proc/self/cgroup": "0::/edge",
        "sys/fs/cgroup/edge/cpu.max": "150000 100000",
        "sys/fs/cgroup/edge/memory.max": 1 << 30,
        "sys/fs/cgroup/edge/memory.current": 1 << 20,
    }
    found = read(tmp_path, [arm(0, A55)], files)
    assert (found.quota_cores, found.memory_limit_bytes) == (1.5, 1 << 30)


def test_this_machine(tmp_path):
    found = cpu.read()
    assert found.cores >= len(found.allowed) > 0
    assert found.memory_bytes > 0

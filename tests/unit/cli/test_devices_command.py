"""``edgert devices`` on this machine, and with a backend that is broken."""

from __future__ import annotations

import json
import os

import pytest

from edgert.backends.survey import DeviceState, MissingRuntime, Runtime
from edgert.cli import devices
from edgert.device.cpu import Cpu
from edgert.inventory import Finding, Inventory

CPU = Cpu(
    *("Some CPU", "GenuineIntel", "A board", "x86_64", ("avx2",), 4, (0, 1)),
    *({"p-cores": (0, 1), "e-cores": (2, 3)}, 1.5, 8 << 30, 1 << 30),
)
BROKEN = Finding("Intel NPU", "/dev/accel/accel0", "intel_vpu", "", False, (), "no way", "Do this")


@pytest.fixture
def broken_backend(tmp_path):
    (tmp_path / "aborts.py").write_text("import os\nos.abort()\n")
    metadata = tmp_path / "aborts-1.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: aborts\nVersion: 1\n")
    (metadata / "entry_points.txt").write_text("[edgert.backends]\naborts = aborts:Backend\n")
    return {**os.environ, "PYTHONPATH": str(tmp_path)}


def test_json_has_its_keys(edgert):
    done = edgert("devices", "--json")
    assert (done.returncode, done.stderr) == (0, "")
    found = json.loads(done.stdout)
    assert list(found) == ["schema", "cpu", "runtimes", "accelerators"]
    assert found["schema"] == devices.SCHEMA == "edgert.devices/1"
    assert set(found["cpu"]) >= {"model", "vendor", "features", "classes", "allowed", "quota_cores"}
    for runtime in found["runtimes"]:
        assert set(runtime) in ({"name", "version", "devices"}, {"name", "missing", "mend"})
    for each in found["accelerators"]:
        assert set(each) >= {"kind", "node", "driver", "usable", "reason", "mend"}


def test_a_broken_backend_is_a_line_and_no_crash(edgert, broken_backend):
    done = edgert("devices", env=broken_backend)
    assert (done.returncode, done.stderr) == (0, "")
    (line,) = [line for line in done.stdout.splitlines() if line.startswith("aborts ")]
    assert "no" in line.split()
    assert "SIGABRT" in line
    assert "emulated:NPU" in done.stdout


def test_the_page_names_reason_and_mend():
    states = (DeviceState("CPU", usable=True), DeviceState("NPU", usable=True, emulated=True))
    runtimes = (
        Runtime("openvino", "openvino 1", states),
        MissingRuntime("tflite", "it is not installed", "Run: pip install 'edgert[tflite]'"),
    )
    cpu, listed, accelerators = devices._sections(Inventory(CPU, runtimes, (BROKEN,)))
    assert "Some CPU (GenuineIntel, x86_64)" in cpu
    assert "4, this process may use 0-1" in cpu
    assert "e-cores     2-3" in cpu
    assert "1.5 cores (cgroup)" in cpu
    assert "1.0 GiB (cgroup)" in cpu
    rows = listed.splitlines()
    assert rows[1].split()[:4] == ["openvino:CPU", "yes", "Some", "CPU"]
    assert rows[2].split()[:2] == ["openvino:NPU", "emulated"]
    assert rows[3].endswith("it is not installed. Run: pip install 'edgert[tflite]'.")
    assert accelerators.endswith("no way. Do this.")


def test_without_accelerators_the_page_says_so():
    *_, said = devices._sections(Inventory(CPU, (), ()))
    assert said == "No accelerator is seen in /dev, on PCI or on USB."

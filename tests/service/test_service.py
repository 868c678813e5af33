"""Pipelines as services of a real systemd without a network: installed, killed, hung, stopped."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from edgert.backends.registry import is_installed
from tests import models
from tests.process.tensors import inferring
from tests.service.box import Box, wait_for
from tests.service.conftest import START_WITHIN_S

pytestmark = pytest.mark.process


def pipeline(name: str, **step: Any) -> str:
    """Return a pipeline that counts by the clock and writes results into its state folder."""
    stages = {
        "camera": {"kind": "tests.process.kinds:Live", "count": 10**9, "fps": 50},
        "step": {
            "kind": "tests.process.kinds:Step",
            "inputs": {"n": "camera.n"},
            "restart": {"hang_s": 1},
            **step,
        },
        "found": {"kind": "tests.process.kinds:Found", "inputs": {"n": "step.n"}},
        "results": {
            "kind": "sink.jsonl",
            "inputs": {"detections": "found.detections"},
            "path": "results.jsonl",
            "worker": "found",
        },
    }
    stages["found"]["worker"] = "found"
    return json.dumps({"version": 1, "name": name, "stages": stages})


class Service:
    """One service in the box."""

    def __init__(self, box: Box, name: str) -> None:
        self.box = box
        self.name = name
        self.unit = f"edgert@{name}.service"
        self.results = f"/var/lib/edgert/{name}/results.jsonl"

    def install(self, **step: Any) -> str:
        """Install it by the command line; return what that said."""
        self.box.write(f"/srv/{self.name}.yaml", pipeline(self.name, **step))
        return self.box.edgert("service", "install", self.name, f"/srv/{self.name}.yaml").stdout

    def start(self) -> None:
        self.box.run("systemctl", "start", self.unit)

    def stop(self) -> None:
        self.box.run("systemctl", "stop", self.unit)

    def show(self) -> dict[str, str]:
        return self.box.show(
            self.unit, "ActiveState", "MainPID", "NRestarts", "Result", "StatusText"
        )

    def wait(self, what: str, condition: Callable[[Mapping[str, str]], Any]) -> dict[str, str]:
        """Wait until its properties are as wanted, and return them."""

        def properties() -> dict[str, str]:
            shown = self.show()
            return shown if condition(shown) else {}

        found: dict[str, str] = wait_for(properties, f"{self.unit} {what}")
        return found

    def wait_again(self, before: Mapping[str, str]) -> dict[str, str]:
        """Wait until systemd has started it again, and it is ready."""
        return self.wait(
            "is started again",
            lambda now: now["ActiveState"] == "active" and now["MainPID"] != before["MainPID"],
        )

    def workers(self) -> dict[str, str]:
        """Return the pids of its workers by name."""
        each = (
            f"for of in $(grep --files-with-matches --no-messages {self.unit} /proc/[0-9]*/cgroup)"
        )
        line = f"{each}; do at=${{of%/cgroup}}; echo $(cat $at/comm) ${{at#/proc/}}; done"
        found = (said.split() for said in self.box.shell(line).splitlines())
        return {comm[0].split(":")[1]: comm[1] for comm in found if comm[0].startswith("ert:")}

    def wait_more_results(self) -> None:
        """Wait until there are more results than now."""
        before = self.count()
        wait_for(lambda: self.count() > before, f"{self.unit} goes on")

    def count(self) -> int:
        done = self.box.run("wc", "-l", self.results, check=False)
        return int(done.stdout.split()[0]) if done.returncode == 0 else 0

    def kill(self, signal: str, pid: str) -> None:
        self.box.shell(f"kill -{signal} {pid}")

    def journal(self, *arguments: str) -> str:
        return self.box.journal(self.unit, *arguments)


@pytest.fixture(scope="session")
def camera(box: Box) -> Service:
    """A service that was installed by the command line, and waits for its warm-up to end."""
    service = Service(box, "camera")
    kind = "tests.service.kinds:Gated"
    said = service.install(kind=kind, until="/srv/warm")
    assert "written   /etc/edgert/camera.yaml\n" in said
    assert said.endswith("start it with `systemctl start edgert@camera.service`\n")
    return service


@pytest.fixture(scope="session")
def slow(box: Box, camera: Service) -> Service:
    """A service whose warm-up takes longer than TimeoutStartSec, while the other tests run."""
    service = Service(box, "slow")
    gate = {"kind": "tests.service.kinds:Gated", "until": "/srv/compiled"}
    box.write("/etc/edgert/slow.yaml", pipeline("slow", **gate))
    box.run("systemctl", "start", "--no-block", service.unit)
    return service


@pytest.fixture
def running(camera: Service) -> Service:
    """The same, ready."""
    camera.box.run("touch", "/srv/warm")
    camera.start()
    return camera


def test_the_units_are_well_formed(camera: Service) -> None:
    done = camera.box.run("systemd-analyze", "verify", camera.unit, "edgert.slice", check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_the_sandbox_leaves_little_open(camera: Service) -> None:
    said = camera.box.run("systemd-analyze", "security", camera.unit).stdout
    exposure = re.search(r"Overall exposure level for \S+: ([\d.]+)", said)
    assert exposure is not None
    assert float(exposure[1]) <= 2.0


def test_it_is_ready_only_after_the_warm_up(camera: Service, slow: Service) -> None:
    camera.stop()
    camera.box.run("rm", "-f", "/srv/warm")
    camera.box.run("systemctl", "start", "--no-block", camera.unit)
    said = "starting: stages are opened and warmed up"
    shown = camera.wait("starts", lambda now: now["StatusText"] == said)
    wait_for(lambda: {"camera", "step", "found"} <= set(camera.workers()), "its workers")
    assert camera.show()["ActiveState"] == shown["ActiveState"] == "activating"
    camera.box.run("touch", "/srv/warm")
    camera.wait("is ready", lambda now: now["ActiveState"] == "active")
    told = r"running: \d+\.\d frames/s, processed \d+, dropped \d+, lost 0"
    camera.wait("tells", lambda now: re.fullmatch(told, now["StatusText"]))
    camera.wait_more_results()


def test_it_runs_as_its_own_user_without_any_right(running: Service) -> None:
    status = running.box.read(f"/proc/{running.show()['MainPID']}/status")
    said = dict(line.split(":\t", 1) for line in status.splitlines() if ":\t" in line)
    uid = running.box.run("id", "--user", "edgert").stdout.strip()
    assert uid != "0"
    assert said["Uid"].split() == [uid] * 4
    assert said["CapEff"] == said["CapBnd"] == "0" * 16
    assert (said["NoNewPrivs"], said["Seccomp"]) == ("1", "2")
    groups = running.box.run("id", "--groups", "--name", "edgert").stdout.split()
    assert {"video", "render"} <= set(groups)
    assert len(said["Groups"].split()) == len(groups)


def test_the_journal_has_fields(running: Service) -> None:
    before = running.show()
    running.kill("KILL", running.workers()["step"])
    running.wait("tells", lambda now: "restarts" in now["StatusText"])
    assert running.show()["MainPID"] == before["MainPID"]
    entries = [
        json.loads(line)
        for line in running.box.run(
            *("journalctl", "--output=json", "EDGERT_PIPELINE=camera", "LOGGER=edgert.supervisor")
        ).stdout.splitlines()
    ]
    told = [entry for entry in entries if "was ended by SIGKILL" in entry["MESSAGE"]]
    assert told
    assert {entry["PRIORITY"] for entry in told} == {"4"}
    of_stage = running.box.run("journalctl", "--output=cat", "EDGERT_STAGE=step").stdout
    assert set(of_stage.splitlines()) == {"step: stage 'step': is warmed up"}
    running.wait_more_results()


def test_a_killed_supervisor_is_started_again_and_nothing_is_left(running: Service) -> None:
    before, workers = running.show(), running.workers()
    running.kill("KILL", before["MainPID"])
    now = running.wait_again(before)
    assert int(now["NRestarts"]) == int(before["NRestarts"]) + 1
    assert not set(workers.values()) & set(running.workers().values())
    running.wait_more_results()


def test_a_supervisor_that_hangs_is_ended_by_the_watchdog(running: Service) -> None:
    before = running.show()
    running.kill("STOP", before["MainPID"])
    running.wait_again(before)
    said = running.journal()
    assert "Watchdog timeout" in said
    assert "Fatal Python error: Aborted" in said  # and where it hung
    running.wait_more_results()


def test_a_worker_that_hangs_is_the_supervisors_own_affair(running: Service) -> None:
    before, hung = running.show(), running.workers()["step"]
    running.kill("STOP", hung)
    wait_for(lambda: running.workers().get("step", hung) != hung, "another worker")
    running.wait_more_results()
    assert running.show()["MainPID"] == before["MainPID"]


def test_a_stop_drains_and_nothing_is_lost(running: Service) -> None:
    before = running.show()
    running.wait("has run for a while", lambda now: now["ActiveState"] == "active")
    running.wait_more_results()
    running.stop()
    now = running.show()
    assert (now["ActiveState"], now["Result"]) == ("inactive", "success")
    said = running.journal(f"_PID={before['MainPID']}")
    counts = re.search(r"read (\d+) = processed (\d+) \+ dropped (\d+) \+ lost (\d+)", said)
    assert counts is not None, said
    read, processed, dropped, lost = map(int, counts.groups())
    assert read == processed + dropped
    assert lost == 0
    assert "camera." not in running.box.run("ls", "/run/edgert/edgert").stdout


def test_a_stop_before_it_has_begun_is_no_failure(camera: Service) -> None:
    camera.stop()
    camera.box.run("systemctl", "start", "--no-block", camera.unit)
    camera.wait("has a process", lambda now: now["MainPID"] != "0")
    camera.stop()
    now = camera.show()
    assert (now["ActiveState"], now["Result"]) == ("inactive", "success")


def test_what_fails_is_started_again_for_ever(box: Box, camera: Service) -> None:
    service = Service(box, "fails")
    box.run("systemctl", "start", service.unit, check=False)
    service.wait("is started again", lambda now: int(now["NRestarts"]) > 10)
    assert service.show()["Result"] != "start-limit-hit"
    service.stop()


def test_a_file_with_faults_says_so_in_the_journal(box: Box, camera: Service) -> None:
    box.write("/etc/edgert/bad.yaml", pipeline("bad", threshold=3))
    service = Service(box, "bad")
    assert box.run("systemctl", "start", service.unit, check=False).returncode != 0
    service.stop()
    said = service.journal("--priority=3")
    assert "/etc/edgert/bad.yaml:1:" in said
    assert "has no key 'threshold'" in said


def test_a_reload_takes_a_good_file_over_and_refuses_a_bad_one(running: Service) -> None:
    before = running.show()
    file = f"/etc/edgert/{running.name}.yaml"
    first = running.box.run("cat", file).stdout
    running.box.write(file, pipeline(running.name, colour="red"))
    running.box.run("systemctl", "reload", running.unit)
    wait_for(lambda: "has no key 'colour'" in running.journal("--priority=3"), "the fault is told")
    good = json.loads(first)
    good["stages"]["step"]["wait_ms"] = 1
    running.box.write(file, json.dumps(good))
    running.box.run("systemctl", "reload", running.unit)
    told = "stage 'step' goes on with other options"
    wait_for(lambda: told in running.journal(), "it is taken over")
    running.box.write(file, first)
    running.box.run("systemctl", "reload", running.unit)
    after = running.wait("is active again", lambda now: now["ActiveState"] == "active")
    assert after["MainPID"] == before["MainPID"]


@pytest.mark.skipif(not is_installed("onnxruntime"), reason="onnxruntime is not installed")
def test_a_model_is_tried_in_the_sandbox(box: Box, camera: Service, tmp_path: Path) -> None:
    for name, factor in (("first", 2.0), ("again", 2.0), ("other", 3.0)):
        model = models.shifting(tmp_path / f"{name}.onnx", factor, 0)
        box.write(f"/srv/{name}.onnx", model.read_bytes())
    stages = inferring(tmp_path, 10**9, device="onnxruntime:CPU", model="/srv/first.onnx")
    stages["detector"]["swap"] = {"frames": 10, "min_agreement": 0.95}
    stages["out"]["path"] = "out.txt"
    stages["frames"]["every_ms"] = 5
    service = Service(box, "swaps")
    document = {"version": 1, "name": service.name, "stages": stages}
    box.write("/etc/edgert/swaps.yaml", json.dumps(document))
    service.start()
    done = box.edgert("ctl", "swaps", "set", "detector.model", "/srv/again.onnx")  # by root
    assert "model '/srv/again.onnx' has passed: on 10 frames its p95 is" in done.stdout
    done = box.edgert("ctl", "swaps", "set", "detector.model", "/srv/other.onnx", check=False)
    assert done.returncode == 2
    assert "model '/srv/other.onnx' is kept back: on 10 frames its p95 is" in done.stderr
    service.stop()


def test_a_full_disk_is_named_and_got_over(box: Box, camera: Service) -> None:
    service = Service(box, "full")
    box.write("/etc/edgert/full.yaml", pipeline("full"))
    box.run("mkdir", "-p", "/var/lib/edgert/full")
    box.run("mount", "-t", "tmpfs", "-o", "size=16k", "tmpfs", "/var/lib/edgert/full")
    box.run("systemctl", "start", "--no-block", service.unit)
    service.wait("has failed", lambda now: int(now["NRestarts"]) >= 1)
    assert "No space left on device" in service.journal()
    box.run("mount", "-o", "remount,size=16m", "/var/lib/edgert/full")
    service.wait("is well again", lambda now: now["ActiveState"] == "active")
    service.wait_more_results()
    service.stop()


def test_a_long_warm_up_gets_more_time(box: Box, slow: Service) -> None:
    began_us = int(box.show(slow.unit, "ExecMainStartTimestampMonotonic").popitem()[1])
    wait_for(lambda: time.monotonic() > began_us / 1e6 + START_WITHIN_S + 1, "its time is over")
    assert slow.show()["ActiveState"] == "activating"
    box.run("touch", "/srv/compiled")
    assert slow.wait("is ready", lambda now: now["ActiveState"] == "active")["NRestarts"] == "0"
    slow.stop()


def test_etc_may_be_read_only(running: Service) -> None:
    box = running.box
    box.run("mount", "--bind", "/etc", "/etc")
    box.run("mount", "-o", "remount,ro,bind", "/etc")
    try:
        running.stop()
        running.start()
        running.wait_more_results()
        box.write("/srv/other.yaml", pipeline("other"))
        done = box.edgert("service", "install", "other", "/srv/other.yaml", check=False)
        assert done.returncode == 2
        assert done.stderr == (
            "file '/etc/edgert/other.yaml': cannot be changed (Read-only file system). Run it as "
            "root, on a file system that can be written; for an image give its --root.\n"
        )
    finally:
        box.run("umount", "/etc")


def test_it_comes_back_after_a_boot(running: Service) -> None:
    box = running.box
    running.wait_more_results()
    box.halt()
    box.boot()
    running.wait("is back", lambda now: now["ActiveState"] == "active")
    running.wait_more_results()
    said = box.edgert("service", "status").stdout.splitlines()
    assert said[0].split()[:4] == ["name", "at", "boot", "state"]
    assert any(
        re.match(r"camera +enabled +active \(running\) +0 +running: ", line) for line in said
    )


def test_an_image_can_be_made(box: Box, camera: Service) -> None:
    box.run("mkdir", "-p", "/srv/image/etc")
    done = box.edgert("service", "install", "camera", "/srv/camera.yaml", "--root", "/srv/image")
    assert done.stderr == "warning: there is no /opt/edgert/bin/edgert in /srv/image yet\n"
    assert box.read("/srv/image/etc/passwd").startswith("edgert:x:")
    wanted = "/srv/image/etc/systemd/system/multi-user.target.wants/edgert@camera.service"
    assert box.run("readlink", wanted).stdout == "/etc/systemd/system/edgert@.service\n"
    assert "EDGERT_INPUT" in box.read("/srv/image/etc/edgert/camera.env")


def test_remove_stops_it_and_leaves_what_was_edited(running: Service) -> None:
    box = running.box
    box.write("/etc/edgert/camera.env", "EDGERT_OUTPUT=/srv/x\n", mode="600")
    said = box.edgert("service", "remove", "camera").stdout.splitlines()
    assert "removed   /etc/edgert/camera.yaml" in said
    assert "kept      /etc/edgert/camera.env (it was edited)" in said
    shown = running.show()
    assert shown["ActiveState"] == "inactive"
    assert box.run("systemctl", "is-enabled", running.unit, check=False).returncode != 0
    again = box.edgert("service", "remove", "camera", check=False)
    assert again.returncode == 2
    assert again.stderr.startswith("service 'camera': is not installed.")

"""What a profile fills in where the file, or the kernel, leaves it open, and what it does not."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from edgert.errors import PipelineError, UserError
from edgert.pipeline.load import read
from edgert.plan.placement import place
from edgert.profiles.apply import Known, apply, core_classes
from edgert.profiles.choose import choose
from edgert.profiles.find import SHIPPED, known, locate, own_folder
from edgert.profiles.load import load_profile
from edgert.profiles.machine import Machine
from edgert.stages.registry import Registry

CORES = 'cores: {source: manual, p-cores: "4-7", e-cores: "0-3"}\n'
DEFAULTS = """\
match: {source: manual, architecture: [x86_64]}
defaults:
  device: {value: ["tflite:edgetpu", CPU], why: because}
  requests: {value: 3, why: because}
  threads: {value: 1, why: because}
"""
PIPELINE = """\
version: 1
name: p
stages:
  camera: {{kind: source.video, uri: a.mkv}}
  open: {{kind: infer, inputs: {{tensor: camera.image}}, model: m{open}}}
  shut: {{kind: infer, inputs: {{tensor: camera.image}}, model: m, device: GPU, requests: 1}}
  both: {{kind: infer, inputs: {{tensor: camera.image}}, model: m, balance: [GPU, CPU]}}
  odd: {{kind: no.such}}
"""
MACHINE = Machine({}, frozenset(range(8)), {})


@pytest.mark.parametrize("open_", ["", ", requests: auto"])
def test_open_keys_are_filled_in_and_written_ones_stay(tmp_path: Path, write, open_: str) -> None:
    profile = load_profile(write("board", DEFAULTS))
    file = tmp_path / "p.yaml"
    file.write_text(PIPELINE.format(open=open_))
    document, found = apply(read(file, {}), Registry(), profile, "asked for", MACHINE)
    devices = ["tflite:edgetpu", "CPU"]
    stages = document.spec.stages
    assert stages["open"].settings == {"model": "m", "device": devices, "requests": 3}
    assert stages["shut"].settings == {"model": "m", "device": "GPU", "requests": 1}
    assert stages["camera"].settings == {"uri": "a.mkv"}
    assert found.profile is not None
    assert found.profile.given == {
        "open": {"device": devices, "requests": 3},
        "both": {"requests": 3},
    }
    assert (found.profile.name, found.threads, found.classes_by) == ("board", 1, "")


def test_an_empty_key_stays_the_fault_that_it_is(tmp_path: Path, write) -> None:
    file = tmp_path / "p.yaml"
    file.write_text(PIPELINE.format(open=", device:"))
    profile = load_profile(write("board", DEFAULTS))
    document, _ = apply(read(file, {}), Registry(), profile, "asked for", MACHINE)
    assert document.spec.stages["open"].settings["device"] is None


def test_threads_are_bounded_where_no_cores_are_given() -> None:
    spec = read_stage({})
    assert place([("a", spec)], Known(threads=1)).threads == 1
    assert place([("a", spec)], Known(threads=64)).threads == place([("a", spec)]).threads


def test_core_classes_of_a_profile_are_for_kernels_that_say_nothing(write) -> None:
    profile = load_profile(write("board", f"match: {{source: manual, cpu: [A]}}\n{CORES}"))
    told = {"p-cores": (4, 5, 6, 7), "e-cores": (0, 1, 2, 3)}
    assert core_classes(profile, MACHINE) == (told, "profile board")
    kernel = {"p-cores": (0,), "e-cores": (1,)}
    assert core_classes(profile, Machine({}, frozenset(range(8)), kernel)) == (kernel, "")


@pytest.mark.parametrize("cores", [range(4), range(0)])
def test_a_machine_without_those_cores_is_not_believed_to_have_them(write, cores: range) -> None:
    profile = load_profile(write("board", f"match: {{source: manual, cpu: [A]}}\n{CORES}"))
    assert core_classes(profile, Machine({}, frozenset(cores), {})) == ({}, "")


def test_a_placement_says_that_its_classes_come_from_a_profile() -> None:
    core = min(os.sched_getaffinity(0))
    spec = read_stage({"cores": "p-cores"})
    placed = place([("a", spec)], Known(None, {"p-cores": (core,)}, "profile board"))
    assert placed.cores == (core,)
    assert placed.why == "cores p-cores of stage 'a'; its cores by profile board"


def read_stage(keys):
    from edgert.pipeline.spec import StageSpec

    return StageSpec.model_validate({"kind": "infer", **keys})


def test_a_profile_by_name_by_path_and_one_that_there_is_not(write) -> None:
    mine = write("rk3588", "match: {source: manual, cpu: [A]}\n")
    assert locate("rk3588") == mine
    assert locate("emulated-npu") == SHIPPED / "emulated-npu.yaml"
    assert locate(str(mine)) == mine
    assert known()["rk3588"] == mine
    with pytest.raises(UserError, match=r"there is no profile 'rk3558'\. Did you mean 'rk3588'\?"):
        locate("rk3558")


def test_a_relative_xdg_folder_is_ignored(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", "somewhere")
    monkeypatch.setenv("HOME", "/nowhere")
    assert own_folder() == Path("/nowhere/.config/edgert/profiles")


def test_a_user_without_a_home_has_the_profiles_of_edgert(monkeypatch: pytest.MonkeyPatch) -> None:
    def nobody(_: int) -> object:
        raise KeyError

    monkeypatch.delenv("XDG_CONFIG_HOME")
    monkeypatch.delenv("HOME")
    monkeypatch.setattr("pwd.getpwuid", nobody)
    assert own_folder() is None
    assert "emulated-npu" in known()


def test_no_more_requests_are_filled_in_than_frames_are_in_flight(tmp_path: Path, write) -> None:
    file = tmp_path / "p.yaml"
    file.write_text(PIPELINE.format(open="") + "limits: {in_flight: 2}\n")
    profile = load_profile(write("board", DEFAULTS))
    document, _ = apply(read(file, {}), Registry(), profile, "asked for", MACHINE)
    assert document.spec.stages["open"].settings["requests"] == 2


def test_a_faulty_profile_is_a_warning_until_it_is_asked_for(own: Path) -> None:
    (own / "bad.yaml").write_text("version: 1\nname: bad\n")
    chosen = choose()
    assert len(chosen.warnings) == 2
    assert all(str(own / "bad.yaml") in warning for warning in chosen.warnings)
    with pytest.raises(PipelineError, match="the key 'sources' is missing"):
        choose("bad")


def test_a_path_that_cannot_be_read_is_told(tmp_path: Path) -> None:
    with pytest.raises(PipelineError, match=r"it cannot be read: .*\. Give a profile file\."):
        choose(str(tmp_path / "none.yaml"))

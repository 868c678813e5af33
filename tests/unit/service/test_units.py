"""What is written for which systemd, and which edgert a service may start."""

from __future__ import annotations

from pathlib import Path

import pytest

from edgert.errors import UserError
from edgert.service import install, units
from edgert.service.files import KEPT, REMOVED, WRITTEN
from edgert.service.layout import Layout, require_name
from edgert.service.program import DEFAULT, require_visible
from edgert.service.variables import parse, variables_of


def system(root: Path, version: str) -> Layout:
    """Make a root with the library of a systemd in it."""
    folder = root / "usr/lib/x86_64-linux-gnu/systemd"
    folder.mkdir(parents=True)
    (folder / f"libsystemd-shared-{version}.so").touch()
    return Layout(root)


@pytest.mark.parametrize(
    ("version", "has"), [("252", False), ("254", True), ("256.4-1.fc41", True)]
)
def test_a_drop_in_is_for_a_systemd_that_knows_it(tmp_path: Path, version: str, has: bool):
    layout = system(tmp_path, version)
    names = [path.name for path in units.shared(layout, DEFAULT)]
    assert ("restart-254.conf" in names) == has


def test_without_a_systemd_there_are_no_drop_ins(tmp_path: Path):
    assert units.systemd_version(tmp_path) == 0


def test_the_unit_starts_the_program_that_installs_it(tmp_path: Path):
    text = units.template(Path("/usr/local/edgert/bin/edgert"))
    assert "\nExecStart=/usr/local/edgert/bin/edgert run /etc/edgert/%i.yaml " in text
    assert str(DEFAULT) not in text


def test_cores_of_the_plan():
    assert units.cores((3, 1, 1)).endswith("[Service]\nCPUAffinity=1 3\n")


def do_install(layout: Layout, name: str, cores: tuple[int, ...] = (), text: str = "a: 1\n"):
    steps = install.install(layout, name, text, DEFAULT, cores, dry=False)
    return {str(step.path.relative_to(layout.root)): step.action for step in steps}


def test_all_that_a_service_needs(tmp_path: Path):
    layout = system(tmp_path, "252")
    assert do_install(layout, "cam", (0, 2)) == dict.fromkeys(
        [
            "etc/sysusers.d/edgert.conf",
            "etc/systemd/system/edgert.slice",
            "etc/systemd/system/edgert@.service",
            "etc/edgert/cam.yaml",
            "etc/edgert/cam.env",
            "etc/systemd/system/edgert@cam.service.d/plan.conf",
        ],
        WRITTEN,
    )
    assert layout.names() == ["cam"]
    assert layout.environment("cam").stat().st_mode & 0o777 == 0o600
    again = do_install(layout, "cam")
    assert again["etc/systemd/system/edgert@cam.service.d/plan.conf"] == REMOVED


def test_what_all_share_goes_with_the_last(tmp_path: Path):
    layout = system(tmp_path, "254")
    for name in ("one", "two"):
        do_install(layout, name)
    install.remove(layout, "one", dry=False)
    assert (layout.units / "edgert@.service").exists()
    assert layout.names() == ["two"]
    steps = install.remove(layout, "two", dry=False)
    assert {step.action for step in steps} == {REMOVED}
    assert [path for path in (tmp_path / "etc").rglob("*") if path.is_file()] == []


def test_an_edited_pipeline_survives_an_installation_and_a_removal(tmp_path: Path):
    layout = system(tmp_path, "252")
    do_install(layout, "cam")
    layout.pipeline("cam").write_text("mine")
    assert do_install(layout, "cam", text="a: 2\n")["etc/edgert/cam.yaml"] == KEPT
    install.remove(layout, "cam", dry=False)
    assert layout.pipeline("cam").read_text() == "mine"


@pytest.mark.parametrize("name", ["", "Cam", "a/b", "a b", "x" * 41, "../x"])
def test_names_that_are_none(name: str):
    with pytest.raises(UserError, match="is not a name of a service"):
        require_name(name)


@pytest.mark.parametrize("path", [Path("/root") / "venv", Path("/home/a/b"), Path("/tmp/x")])
def test_a_program_that_a_service_could_not_see_is_refused(path: Path):
    with pytest.raises(UserError) as caught:
        require_visible(path)
    said = str(caught.value)
    assert said.startswith(f"edgert in '{path}': a service cannot see what is below /")
    assert "python3 -m venv /opt/edgert" in said


def test_a_program_that_is_not_there_is_refused():
    with pytest.raises(UserError, match="is not there"):
        require_visible(Path("/opt/nowhere/bin/edgert"))


def test_every_system_lets_its_own_programs_be_seen():
    require_visible(Path("/usr/bin/env"))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("A=1\n# B=2\n; C=3\n\nD = x\n", {"A": "1"}),
        ("A=rtsp://u:p@cam/a?b=c#d\n", {"A": "rtsp://u:p@cam/a?b=c#d"}),
        ("A='a b'\nB=\"c\"\nC=it's\n", {"A": "a b", "B": "c", "C": "it's"}),
        ("A=one \\\ntwo\nB='open\n", {"A": "one two", "B": "'open"}),
    ],
)
def test_variables_are_read_as_systemd_reads_them(text: str, expected: dict[str, str]):
    assert parse(text) == expected


def test_variables_that_are_there_stay_and_are_known(tmp_path: Path):
    layout = system(tmp_path, "252")
    layout.pipelines.mkdir(parents=True)
    layout.environment("cam").write_text("CAM_PASSWORD=secret\n")
    assert do_install(layout, "cam")["etc/edgert/cam.env"] == KEPT
    assert variables_of(layout, "cam") == {"CAM_PASSWORD": "secret"}
    assert variables_of(layout, "other") == {}

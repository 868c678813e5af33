"""Files that are written once and then belong to whoever edits them."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgert.errors import ResourceError
from edgert.service.files import KEPT, REMOVED, SAME, WRITTEN, Keeper


def keeper(root: Path, *, dry: bool = False) -> Keeper:
    return Keeper(root, root / "etc/.installed.json", dry)


def write(root: Path, text: str, *, dry: bool = False) -> tuple[str, str]:
    """Write the one file; return what was done and said."""
    keeping = keeper(root, dry=dry)
    keeping.write(root / "etc/a.conf", text)
    keeping.save()
    (step,) = keeping.steps
    return step.action, step.note


def test_what_nobody_edited_is_replaced(tmp_path: Path):
    file = tmp_path / "etc/a.conf"
    assert write(tmp_path, "1") == (WRITTEN, "")
    assert write(tmp_path, "1") == (SAME, "")
    assert write(tmp_path, "2") == (WRITTEN, "")
    assert file.read_text() == "2"


def test_what_was_edited_stays_and_what_is_new_is_put_beside_it(tmp_path: Path):
    write(tmp_path, "1")
    file = tmp_path / "etc/a.conf"
    file.write_text("mine")
    assert write(tmp_path, "1") == (KEPT, "it was edited")
    assert write(tmp_path, "2") == (KEPT, "it was edited; what is new is in a.conf.new")
    assert (file.read_text(), (tmp_path / "etc/a.conf.new").read_text()) == ("mine", "2")


def test_a_file_that_was_there_before_is_somebody_elses(tmp_path: Path):
    file = tmp_path / "etc/a.conf"
    file.parent.mkdir()
    file.write_text("theirs")
    assert write(tmp_path, "1")[0] == KEPT
    assert file.read_text() == "theirs"


@pytest.mark.parametrize("damage", ["", "{", '{"files": 1}'])
def test_with_a_damaged_record_nothing_is_overwritten(tmp_path: Path, damage: str):
    write(tmp_path, "1")
    (tmp_path / "etc/.installed.json").write_text(damage)
    assert write(tmp_path, "2")[0] == KEPT
    assert (tmp_path / "etc/a.conf").read_text() == "1"


def test_a_dry_run_says_the_same_and_changes_nothing(tmp_path: Path):
    assert write(tmp_path, "1", dry=True) == (WRITTEN, "")
    assert list(tmp_path.iterdir()) == []


def test_removed_is_only_what_is_as_it_was_written(tmp_path: Path):
    folder = tmp_path / "etc/x.service.d"
    keeping = keeper(tmp_path)
    for name in ("a.conf", "b.conf"):
        keeping.write(folder / name, name)
    keeping.save()
    (folder / "b.conf").write_text("mine")
    again = keeper(tmp_path)
    for name in ("a.conf", "b.conf", "never.conf"):
        again.remove(folder / name)
    again.save()
    assert [(step.path.name, step.action) for step in again.steps] == [
        ("a.conf", REMOVED),
        ("b.conf", KEPT),
    ]
    assert [path.name for path in folder.iterdir()] == ["b.conf"]


def test_the_last_file_takes_its_folder_and_the_record_along(tmp_path: Path):
    file = tmp_path / "etc/x.service.d/a.conf"
    for action in ("write", "remove"):
        keeping = keeper(tmp_path)
        keeping.write(file, "1") if action == "write" else keeping.remove(file)
        keeping.save()
    assert list((tmp_path / "etc").iterdir()) == []


def test_secrets_are_never_readable_by_others(tmp_path: Path):
    keeping = keeper(tmp_path)
    keeping.write(tmp_path / "a.env", "PASSWORD=x", 0o600)
    assert (tmp_path / "a.env").stat().st_mode & 0o777 == 0o600


def test_a_place_that_cannot_be_written_is_named(tmp_path: Path):
    (tmp_path / "etc").write_text("a file, where a folder is needed")
    with pytest.raises(ResourceError) as caught:
        keeper(tmp_path).write(tmp_path / "etc/x/a.conf", "1")
    assert str(caught.value).startswith(f"file '{tmp_path}/etc/x/a.conf': cannot be read (Not a ")


@settings(max_examples=30, deadline=None)
@given(st.lists(st.sampled_from(["1", "2", "3", "edit"]), max_size=8))
def test_no_history_loses_an_edit(tmp_path_factory: pytest.TempPathFactory, history: list[str]):
    root = tmp_path_factory.mktemp("root")
    file = root / "etc/a.conf"
    file.parent.mkdir()
    edited = ""
    for number, event in enumerate(history):
        if event == "edit":
            edited = f"mine {number}"
            file.write_text(edited)
        else:
            write(root, event)
        assert file.read_text() == (edited or event)

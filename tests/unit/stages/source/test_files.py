from pathlib import Path

import pytest

from edgert.errors import MediaError
from edgert.stages.source.files import find_images


def names(path: Path, *, recursive: bool = False) -> list[str]:
    return [file.name for file in find_images(path, "stage 'photos'", recursive=recursive)]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("img10.png", "img2.jpg", "IMG1.PNG", "notes.txt", "below/img3.bmp"):
        file = tmp_path / name
        file.parent.mkdir(exist_ok=True)
        file.touch()
    (tmp_path / "folder.png").mkdir()
    return tmp_path


def test_a_directory_is_its_images_in_natural_order(folder: Path) -> None:
    assert names(folder) == ["IMG1.PNG", "img2.jpg", "img10.png"]


def test_folders_below_are_read_on_request(folder: Path) -> None:
    assert names(folder, recursive=True)[0] == "img3.bmp"


def test_a_pattern_and_a_file_mean_what_they_name(folder: Path) -> None:
    assert names(folder / "img*") == ["img2.jpg", "img10.png"]
    assert names(folder / "notes.txt") == ["notes.txt"]


def test_a_file_whose_name_looks_like_a_pattern_is_a_file(tmp_path: Path) -> None:
    (tmp_path / "a[1].png").touch()
    assert names(tmp_path / "a[1].png") == ["a[1].png"]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("missing", "no such file or directory"),
        ("*.gif", "matches no file"),
        ("empty", "holds no images"),
    ],
)
def test_nothing_there_is_a_fault(folder: Path, name: str, expected: str) -> None:
    (folder / "empty").mkdir()
    with pytest.raises(MediaError, match=expected) as caught:
        names(folder / name)
    assert caught.value.faults[0].mend

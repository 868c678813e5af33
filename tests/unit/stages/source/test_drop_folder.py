from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from edgert.errors import FrameLostError, MediaError
from edgert.pipeline.adapter import read_as
from edgert.stages.harness import opened
from edgert.stages.live import OFFLINE, ONLINE
from edgert.stages.source import drop_folder
from edgert.stages.source.drop_folder import DropFolder
from edgert.stages.source.images import ImagesSource
from tests.cameras import jpeg
from tests.process.runs import wait_for

from .media import plan_context


@pytest.fixture(autouse=True)
def _quickly(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(drop_folder, "LOOK_EVERY_S", 0.02)
    monkeypatch.setattr(drop_folder, "UNCHANGED_S", 0.04)


@pytest.fixture(params=["told by the kernel", "looked for"])
def folder(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: Any) -> Path:
    """A directory, of which the kernel tells, or as on a network file system does not."""
    if request.param == "looked for":
        monkeypatch.setattr(DropFolder, "_watch", lambda _: None)
    return tmp_path


@pytest.fixture
def dropped(folder: Path) -> Iterator[DropFolder]:
    with closing(DropFolder(folder, recursive=False)) as found:
        found.start()
        yield found


def test_images_that_drop_in_are_taken_once_each(folder: Path, dropped: DropFolder) -> None:
    for number in (1, 2, 10):
        (folder / f"shot{number}.jpg").write_bytes(jpeg(8, 6))
        assert dropped.take() == folder / f"shot{number}.jpg"
    (folder / "notes.txt").write_text("no image")
    (folder / "last.png").write_bytes(b"any")
    assert dropped.take() == folder / "last.png"
    assert not dropped.is_ready()


def test_those_from_before_come_first_in_natural_order(folder: Path) -> None:
    for name in ("shot10.jpg", "shot2.jpg"):
        (folder / name).write_bytes(b"x")
    with closing(DropFolder(folder, recursive=False)) as dropped:
        dropped.start()
        assert [dropped.take().name, dropped.take().name] == ["shot2.jpg", "shot10.jpg"]


def test_one_that_is_renamed_into_place_is_whole(folder: Path, dropped: DropFolder) -> None:
    (folder / ".shot.part").write_bytes(b"half")
    assert not dropped.is_ready()
    (folder / ".shot.part").rename(folder / "shot.jpg")
    assert dropped.take() == folder / "shot.jpg"


def test_one_that_is_written_again_comes_again(folder: Path, dropped: DropFolder) -> None:
    path = folder / "shot.jpg"
    path.write_bytes(b"one")
    assert dropped.take() == path
    path.write_bytes(b"another")
    assert dropped.take() == path


def test_one_that_is_being_written_is_waited_for(tmp_path: Path) -> None:
    with closing(DropFolder(tmp_path, recursive=False)) as dropped:
        dropped.start()
        with (tmp_path / "shot.jpg").open("wb") as file:
            file.write(b"half")
            file.flush()
            (tmp_path / "other.jpg").write_bytes(b"whole")
            assert dropped.take().name == "other.jpg"
            assert not dropped.is_ready()
            file.write(b"the other half")
        assert dropped.take().name == "shot.jpg"


def test_one_that_grows_is_waited_for_where_the_kernel_does_not_tell(
    tmp_path: Path, monkeypatch: Any
) -> None:
    monkeypatch.setattr(DropFolder, "_watch", lambda _: None)
    monkeypatch.setattr(drop_folder, "UNCHANGED_S", 3600)
    with closing(DropFolder(tmp_path, recursive=False)) as dropped:
        dropped.start()
        (tmp_path / "shot.jpg").write_bytes(b"half")
        assert not dropped.is_ready()
        monkeypatch.setattr(drop_folder, "UNCHANGED_S", 0.04)
        assert dropped.take().name == "shot.jpg"


def test_folders_below_are_looked_through_where_that_is_asked_for(tmp_path: Path) -> None:
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "a" / "b" / "shot.jpg").write_bytes(b"x")
    with closing(DropFolder(tmp_path, recursive=True)) as dropped:
        dropped.start()
        assert dropped.take() == tmp_path / "a" / "b" / "shot.jpg"


def test_a_directory_that_goes_and_comes_back(tmp_path: Path) -> None:
    folder = tmp_path / "drop"
    folder.mkdir()
    with closing(DropFolder(folder, recursive=False)) as dropped:
        dropped.start()
        folder.rmdir()
        wait_for(lambda: dropped.is_ready() or dropped.condition.state == OFFLINE, "offline")
        assert "no such file or directory" in dropped.condition.reason
        folder.mkdir()
        (folder / "shot.jpg").write_bytes(b"x")
        assert dropped.take() == folder / "shot.jpg"
        assert dropped.condition.state == ONLINE


def test_what_was_taken_is_not_remembered_for_ever(tmp_path: Path) -> None:
    with closing(DropFolder(tmp_path, recursive=False)) as dropped:
        dropped.start()
        for number in range(5):
            (tmp_path / f"{number}.jpg").write_bytes(b"x")
            dropped.take().unlink()
        wait_for(lambda: dropped.is_ready() or not dropped._taken, "nothing remembered")


def test_a_watched_folder_is_a_source_of_images(tmp_path: Path) -> None:
    settings = {"uri": ".", "watch": True, "max_size": [32, 24]}
    with opened(ImagesSource, settings, {}, plan_context(tmp_path)) as run:
        feed: Any = run.stage.feed  # type: ignore[attr-defined]
        feed.start()
        (tmp_path / "a.jpg").write_bytes(jpeg(16, 12))
        first = run.grab()
        assert first is not None
        assert first["image"].header.width == 16
        (tmp_path / "b.jpg").write_bytes(jpeg(64, 48))  # larger than its slot
        second = run.grab()
        assert second is not None
        assert second["image"].tensors["bgr"].shape == (24, 32, 3)
        (tmp_path / "c.jpg").write_bytes(jpeg(16, 12)[:100])
        with pytest.raises(FrameLostError, match=r"'c\.jpg'"):
            run.grab()


@pytest.mark.parametrize("name", ["nothing", "file"])
def test_only_a_directory_can_be_watched(tmp_path: Path, name: str) -> None:
    (tmp_path / "file").touch()
    options = read_as(ImagesSource.options, {"uri": name, "watch": True})
    with pytest.raises(MediaError, match=r"no such directory|is not a directory"):
        ImagesSource.plan(options, {}, plan_context(tmp_path))


def test_a_watched_directory_cannot_be_looped() -> None:
    with pytest.raises(ValueError, match="no end to loop at"):
        read_as(ImagesSource.options, {"uri": "a", "watch": True, "loop": 2})


def test_without_watches_left_images_are_looked_for(tmp_path: Path) -> None:
    with closing(DropFolder(tmp_path / "gone", recursive=False)) as dropped:
        dropped.start()
        assert dropped.ready_fd == -1
        assert not dropped.is_ready()


def test_files_that_cannot_be_read_do_not_end_it(tmp_path: Path, folder: Path) -> None:
    (tmp_path / "dangling.jpg").symlink_to(tmp_path / "nowhere")
    (tmp_path / "folder.jpg").mkdir()
    with closing(DropFolder(tmp_path, recursive=False)) as dropped:
        dropped.start()
        (tmp_path / "shot.jpg").write_bytes(b"x")
        assert dropped.take() == tmp_path / "shot.jpg"
        assert not dropped.is_ready()

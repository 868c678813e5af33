"""Disks that are full, and files in parts: on a real small file system."""

from __future__ import annotations

import json
import logging
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from edgert.errors import FrameLostError, StageError, UserError
from edgert.stages.harness import StageRun, opened
from edgert.stages.sink.jsonl import JsonlSink
from edgert.tensor import FrameHeader

from .ports import DETECTIONS, found, plan_context
from .test_video import SIZE, frames_of, grey, header, recording

MB = 1_000_000


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=4m", "edgert-test", str(folder)]
    if subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("a tmpfs cannot be mounted by this user")
    yield folder
    subprocess.run(["umount", "--lazy", str(folder)], check=True)


def writing(path: Path, restarts: int = 0, **settings: Any) -> Any:
    return opened(
        JsonlSink,
        {"path": str(path), **settings},
        {"detections": DETECTIONS},
        plan_context(Path()),
        restarts=restarts,
    )


def write(run: StageRun, number: int) -> bool:
    """Whether a line was written."""
    try:
        run.feed({"detections": found((1, 2, 3, 4))}, FrameHeader(sequence=number))
    except FrameLostError as error:
        return not error.is_said
    return True


def until(condition: Callable[[], bool]) -> None:
    deadline_s = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < deadline_s


def lines(path: Path) -> list[int]:
    return [json.loads(line)["frame"] for line in path.read_text().splitlines()]


def test_lines_stop_below_the_floor_and_go_on_with_room(
    small_disk: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    ballast, file = small_disk / "ballast", small_disk / "out.jsonl"
    numbers = iter(range(10**9))
    with writing(file, min_free_mb=2) as run:
        assert write(run, next(numbers))
        ballast.write_bytes(bytes(3 * MB))
        until(lambda: not write(run, next(numbers)))
        missed = sum(not write(run, next(numbers)) for _ in range(20))
        assert missed == 20
        ballast.unlink()
        until(lambda: write(run, next(numbers)))
        unwritten = run.stage._room.unwritten  # type: ignore[attr-defined]
    assert caplog.text.count("nothing is written until it has") == 1
    assert f"writes again; {unwritten} frames not written" in caplog.text
    assert len(lines(file)) + unwritten == next(numbers)


def test_a_disk_without_a_byte_leaves_whole_lines(small_disk: Path) -> None:
    """The room ends between two looks: the kernel says so in the middle of a line."""
    ballast, file = small_disk / "ballast", small_disk / "out.jsonl"
    with writing(file, min_free_mb=0.000001) as run:
        with pytest.raises(OSError, match="No space"):
            ballast.write_bytes(bytes(8 * MB))
        written = 0
        while write(run, written):
            written += 1
        ballast.unlink()
        until(lambda: write(run, written))
    assert lines(file) == list(range(written + 1))


def test_without_a_floor_a_full_disk_ends_the_run(small_disk: Path) -> None:
    file = small_disk / "out.jsonl"
    with writing(file) as run:
        with pytest.raises(OSError, match="No space"):
            (small_disk / "ballast").write_bytes(bytes(8 * MB))
        with pytest.raises(StageError, match="No space left on device"):
            until(lambda: not write(run, len(lines(file))))
    assert lines(file) == list(range(len(lines(file))))


@pytest.mark.parametrize("settings", [{}, {"rotate": {"size_mb": 100}}])
def test_a_recording_ends_below_the_floor_and_another_begins(
    small_disk: Path, settings: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    ballast = small_disk / "ballast"
    numbers = iter(range(10**9))

    def record(run: StageRun) -> bool:
        number = next(numbers)
        try:
            run.feed({"image": grey(*SIZE), "detections": found()}, header(number))
        except FrameLostError:
            return False
        return True

    with recording(small_disk / "out.mkv", min_free_mb=2, codec="mpeg4", **settings) as run:
        assert record(run)
        ballast.write_bytes(bytes(3 * MB))
        until(lambda: not record(run))
        ballast.unlink()
        until(lambda: record(run))
        unwritten = run.stage._room.unwritten  # type: ignore[attr-defined]
    first, second = ("out.000001.mkv", "out.000002.mkv") if settings else ("out.mkv", "out-2.mkv")
    files = {file.name: len(frames_of(file)) for file in small_disk.iterdir()}
    assert set(files) == {first, second}
    assert sum(files.values()) + unwritten == next(numbers)


@pytest.mark.parametrize("settings", [{}, {"min_free_mb": 0.000001}])
def test_a_recording_on_a_disk_without_a_byte_plays_to_its_end(
    small_disk: Path, settings: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    """The fragment that did not fit is not there: decoding half a one is an error."""
    size = (320, 240)
    noise = {**grey(*size), "y": np.random.default_rng(0).integers(0, 255, size[::-1], np.uint8)}
    told: Any = pytest.raises(StageError, match="No space left") if not settings else nullcontext()
    fed = 0
    with (
        told,
        recording(small_disk / "out.mp4", size=size, fps=2, codec="mpeg4", **settings) as run,
    ):
        while fed < 1000:
            try:
                run.feed({"image": noise, "detections": found()}, header(fed, size))
            except FrameLostError:
                break
            fed += 1
    assert 0 < (small_disk / "out.mp4").stat().st_size < 4 * 1024 * 1024
    there = len(frames_of(small_disk / "out.mp4"))
    assert 0 < there < fed < 1000
    assert (
        f"up to {fed - there} frames at the end of '{small_disk / 'out.mp4'}' did not"
        in caplog.text
    )


def test_parts_are_bounded_and_whole(tmp_path: Path) -> None:
    file = tmp_path / "out.jsonl"
    with writing(file, rotate={"size_mb": 0.001, "keep": 3}) as run:
        for number in range(100):
            assert write(run, number)
            assert sum(part.stat().st_size for part in tmp_path.iterdir()) <= 4000
    parts = sorted(part for part in tmp_path.iterdir() if part != file)
    assert len(parts) == 3
    told = [number for part in [*parts, file] for number in lines(part)]
    assert told == list(range(100 - len(told), 100))


def test_what_an_earlier_run_left_is_kept_as_a_part(tmp_path: Path) -> None:
    file = tmp_path / "out.jsonl"
    for _ in range(2):
        with writing(file, rotate={"duration_s": 3600}) as run:
            assert write(run, 0)
    assert lines(file) == lines(tmp_path / "out.000001.jsonl") == [0]


def test_a_line_at_the_end_of_a_part_is_not_written_again_after_a_restart(tmp_path: Path) -> None:
    file, rotate = tmp_path / "out.jsonl", {"size_mb": 0.001}
    with writing(file, rotate=rotate) as run:
        for number in range(20):
            write(run, number)
    file.write_text("")  # it died right after it had begun a new part
    (part, *_) = sorted(tmp_path.glob("out.0*.jsonl"))[::-1]
    last = lines(part)[-1]
    with writing(file, restarts=1, rotate=rotate) as run:
        for number in (last, last + 1):
            write(run, number)
    assert lines(file) == [last + 1]


def test_a_recording_in_parts(tmp_path: Path) -> None:
    with recording(
        tmp_path / "out.mp4", codec="mpeg4", rotate={"size_mb": 0.002, "keep": 2}
    ) as run:
        for number in range(160):
            image = grey(*SIZE, 40 + number)
            run.feed({"image": image, "detections": found()}, header(number))
    files = sorted(file.name for file in tmp_path.iterdir())
    assert len(files) == 2
    assert all(frames_of(tmp_path / name) for name in files)


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"min_free_mb": 0.001}, "its free space cannot be read: No such file"),
    ],
)
def test_a_folder_that_goes_is_told(tmp_path: Path, settings: dict[str, Any], said: str) -> None:
    folder = tmp_path / "results"
    folder.mkdir()
    with writing(folder / "out.jsonl", **settings) as run:
        assert write(run, 0)
        folder.rename(tmp_path / "gone")
        with pytest.raises(StageError, match=said):
            until(lambda: not write(run, 1))


@pytest.mark.parametrize("settings", [{"rotate": {"size_mb": 1}}, {"min_free_mb": 1}])
def test_standard_output_has_no_parts_and_no_room(settings: dict[str, Any]) -> None:
    said = f"`{next(iter(settings))}`: is for files, and this is standard output"
    with pytest.raises(UserError, match=said), writing(Path("-"), **settings):
        pass

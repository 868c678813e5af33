import json
import os
import resource
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from edgert.errors import StageError, UserError
from edgert.pipeline.adapter import read_as
from edgert.results import ClassificationResult, PoseResult, SegmentationResult, TextResult, decode
from edgert.stages.harness import opened
from edgert.stages.sink.jsonl import JsonlSink
from edgert.tensor import FrameHeader, PortSpec

from .ports import CLASSES, DETECTIONS, LINES, MASKS, POSES, classed, found, plan_context, pose


def writing(path: object, restarts: int = 0, **more: Any) -> Any:
    context = plan_context(Path(), **more)
    given = {"detections": DETECTIONS}
    return opened(JsonlSink, {"path": str(path)}, given, context, restarts=restarts)


@contextmanager
def stdout_is(fd: int) -> Iterator[None]:
    """Let fd 1 of this process be another one."""
    saved = os.dup(1)
    os.dup2(fd, 1)
    try:
        yield
    finally:
        os.dup2(saved, 1)
        os.close(saved)


def test_every_frame_is_a_line_as_soon_as_it_is_processed(tmp_path: Path) -> None:
    file = tmp_path / "out.jsonl"
    header = FrameHeader(
        stream=1,
        sequence=7,
        pts_ns=1_234_567_891,
        captured_ns=time.monotonic_ns(),
        width=768,
        height=576,
    )
    with writing(file, streams=("front", "back")) as run:
        run.feed({"detections": found((1, 2, 30.128, 40))}, header)
        (line,) = file.read_text().splitlines()
        run.feed({"detections": found()}, header._replace(sequence=8))
    said = json.loads(line)
    assert 0 <= said.pop("latency_ms") < 10_000
    assert said == {
        "schema": "edgert.result/1",
        "task": "detection",
        "stream": "back",
        "frame": 7,
        "pts_s": 1.234568,
        "width": 768,
        "height": 576,
        "detections": [
            {"label": "person", "class": 0, "score": 0.875, "box": [1.0, 2.0, 30.13, 40.0]}
        ],
    }
    assert decode(file.read_bytes().splitlines()[1]).detections == []


def test_the_epoch_of_a_camera_is_told_once_there_is_more_than_one(tmp_path: Path) -> None:
    file = tmp_path / "out.jsonl"
    with writing(file) as run:
        run.feed({"detections": found()}, FrameHeader())
        run.feed({"detections": found()}, FrameHeader(sequence=1, epoch=1))
    first, second = map(json.loads, file.read_text().splitlines())
    assert "epoch" not in first
    assert second["epoch"] == 1
    assert decode(file.read_bytes().splitlines()[1]).epoch == 1


def test_poses_are_written_as_points_with_names(tmp_path: Path) -> None:
    path = tmp_path / "out.jsonl"
    context = plan_context(Path())
    with opened(JsonlSink, {"path": str(path)}, {"poses": POSES}, context) as run:
        run.feed({"poses": pose((1.234, 2, 0.5), (3, 4, 1), (-5, 6, 0))})
    said = json.loads(path.read_text())
    assert said["task"] == "pose"
    assert said["poses"] == [
        {
            "score": 0.75,
            "keypoints": [
                {"name": "nose", "x": 1.23, "y": 2.0, "score": 0.5},
                {"name": "left_shoulder", "x": 3.0, "y": 4.0, "score": 1.0},
                {"name": "right_shoulder", "x": -5.0, "y": 6.0, "score": 0.0},
            ],
        }
    ]
    assert isinstance(decode(path.read_bytes()), PoseResult)


def test_classes_are_written_best_first(tmp_path: Path) -> None:
    path = tmp_path / "out.jsonl"
    inputs = {"classification": CLASSES}
    with opened(JsonlSink, {"path": str(path)}, inputs, plan_context(Path())) as run:
        run.feed({"classification": classed((1, 0.75), (7, 0.12345))})
        run.feed({"classification": classed()})
    first, second = path.read_bytes().splitlines()
    said = json.loads(first)
    assert said["task"] == "classification"
    assert said["classes"] == [
        {"label": "parrot", "class": 1, "score": 0.75},
        {"label": "class 7", "class": 7, "score": 0.1235},
    ]
    assert isinstance(decode(first), ClassificationResult)
    assert decode(second).classes == []


def test_a_mask_is_written_as_runs_of_each_class(tmp_path: Path) -> None:
    path = tmp_path / "out.jsonl"
    mask = np.zeros((3, 4), np.uint8)
    mask[1:, 2:] = 2
    header = FrameHeader(width=8, height=9, transform=(2.0, 0.0, 0.0, 0.0, 3.0, 0.0))
    settings = {"path": str(path)}
    with opened(JsonlSink, settings, {"segmentation": MASKS}, plan_context(Path())) as run:
        run.feed({"segmentation": {"mask": mask}}, header)
    said = json.loads(path.read_text())
    assert said["task"] == "segmentation"
    assert said["mask"] == {"size": [3, 4], "box": [0.0, 0.0, 8.0, 9.0]}
    assert said["classes"] == [{"label": "car", "class": 2, "area": 24.0, "counts": [7, 2, 1, 2]}]
    result = decode(path.read_bytes())
    assert isinstance(result, SegmentationResult)
    assert (result.mask_of(result.classes[0]) == (mask == 2)).all()


def test_lines_of_text_are_written_with_how_many_were_not_read(tmp_path: Path) -> None:
    path = tmp_path / "out.jsonl"
    corners = np.array([[(1, 2), (30.126, 2), (30, 12), (1, 12)]], np.float32)
    context = plan_context(Path())
    with opened(JsonlSink, {"path": str(path)}, {"lines": LINES}, context) as run:
        slot = run.inputs["lines"]
        slot.loan.set_metadata({"text": ["Straße 東"], "not_read": 2})
        scores = np.full(1, 0.875, np.float32)
        sample = slot.fill({"corners": corners, "scores": scores}, FrameHeader())
        run.stage.process({"lines": sample}, {})
    said = json.loads(path.read_text())
    assert (said["task"], said["not_read"]) == ("text", 2)
    polygon = [[1.0, 2.0], [30.13, 2.0], [30.0, 12.0], [1.0, 12.0]]
    assert said["lines"] == [{"text": "Straße 東", "score": 0.875, "polygon": polygon}]
    assert isinstance(decode(path.read_bytes()), TextResult)


@pytest.mark.parametrize("inputs", [{}, {"detections": DETECTIONS, "poses": POSES}])
def test_one_kind_of_results_is_written(inputs: dict[str, PortSpec]) -> None:
    with pytest.raises(UserError, match=f"one kind of results, and {len(inputs)} are connected"):
        JsonlSink.plan(JsonlSink.options(), inputs, plan_context(Path()))


def test_the_file_is_made_anew(tmp_path: Path) -> None:
    file = tmp_path / "out.jsonl"
    file.write_text("old\n" * 10)
    with writing(file) as run:
        assert file.read_text() == ""
        run.feed({"detections": found()})
    assert len(file.read_text().splitlines()) == 1


def test_a_path_is_relative_to_where_the_run_is_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with writing("out.jsonl"):
        assert (tmp_path / "out.jsonl").exists()


def test_planning_neither_makes_nor_changes_the_file(tmp_path: Path) -> None:
    old = tmp_path / "old.jsonl"
    old.write_text("old\n")
    for path in (old, tmp_path / "new.jsonl"):
        options = read_as(JsonlSink.options, {"path": str(path)})
        JsonlSink.plan(options, {"detections": DETECTIONS}, plan_context(tmp_path))
    assert old.read_text() == "old\n"
    assert not (tmp_path / "new.jsonl").exists()


@pytest.mark.parametrize(
    ("path", "expected"),
    [(".", "is a directory"), ("gone/out.jsonl", "there is no directory"), ("/proc/x", "written")],
)
def test_an_unwritable_path_is_a_fault_of_the_user(
    tmp_path: Path, path: str, expected: str
) -> None:
    with pytest.raises(UserError, match=expected) as caught, writing(tmp_path / path):
        pass
    assert caught.value.exit_code == 2
    assert caught.value.faults[0].mend


def test_standard_output_is_written_and_left_open() -> None:
    reader, writer = os.pipe()
    with stdout_is(writer):
        os.close(writer)
        with writing("-") as run:
            run.feed({"detections": found()})
        os.fstat(1)
    with os.fdopen(reader, "rb") as pipe:
        assert decode(pipe.read()).frame == 0


def test_a_file_has_one_writer_at_a_time(tmp_path: Path) -> None:
    file = tmp_path / "out.jsonl"
    with writing(file) as first:
        first.feed({"detections": found()})
        said = f"file '{file}': is being written by another stage or run. Give another"
        with pytest.raises(UserError, match=said), writing(file):
            pass
        first.feed({"detections": found()}, FrameHeader(sequence=1))
    assert len(file.read_text().splitlines()) == 2
    with writing(file):
        assert file.read_text() == ""


def test_a_pipe_needs_a_reader(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with pytest.raises(UserError, match="is a pipe that nobody reads"), writing(pipe):
        pass
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    with writing(pipe) as run:
        run.feed({"detections": found()})
    assert decode(os.read(reader, 10_000)).frame == 0
    os.close(reader)


def test_a_reader_that_has_gone_is_told() -> None:
    reader, writer = os.pipe()
    os.close(reader)
    with stdout_is(writer), writing("-") as run:
        os.close(writer)
        with pytest.raises(StageError, match="standard output: whoever reads it has gone"):
            run.feed({"detections": found()})


def test_a_full_device_is_told() -> None:
    with (
        writing("/dev/full") as run,
        pytest.raises(StageError, match="'/dev/full': cannot be written: No space left"),
    ):
        run.feed({"detections": found()})


def test_no_half_line_is_left_where_room_ends(tmp_path: Path) -> None:
    """A limit of the file's size stands in for a full disk: the first part of a line is written."""
    file = tmp_path / "out.jsonl"
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    try:
        with writing(file) as run:
            run.feed({"detections": found()})
            whole = file.read_bytes()
            resource.setrlimit(resource.RLIMIT_FSIZE, (len(whole) + 20, hard))
            with pytest.raises(StageError, match="File too large"):
                run.feed({"detections": found()})
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        signal.signal(signal.SIGXFSZ, handler)
    assert file.read_bytes() == whole


@pytest.mark.parametrize("is_blocking", [True, False])
def test_a_pipe_that_is_full_is_waited_for(*, is_blocking: bool) -> None:
    """Its reader begins when the sink has said that it waits."""
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    filled = 0
    with suppress(BlockingIOError):
        while True:
            filled += os.write(writer, b"\n" * 4096)
    os.set_blocking(writer, is_blocking)
    received = bytearray()

    def read_all() -> None:
        while chunk := os.read(reader, 65536):
            received.extend(chunk)

    thread = threading.Thread(target=read_all)

    def begin_to_read() -> None:
        if not thread.ident:
            thread.start()

    with stdout_is(writer):
        os.close(writer)
        with writing("-") as run:
            run.stage.context.on_wait = begin_to_read
            run.feed({"detections": found((1, 2, 3, 4))})
    thread.join(10)
    os.close(reader)
    assert decode(bytes(received[filled:])).detections[0].box == (1, 2, 3, 4)


@pytest.mark.parametrize("half", ["", '{"stream": "back", "fra', "x" * 3_000_000])
def test_after_a_restart_the_file_goes_on_in_whole_lines(tmp_path: Path, half: str) -> None:
    """Half a line is cut off; what is written already is not written again."""
    file = tmp_path / "out.jsonl"
    streams = ("front", "back")
    with writing(file, streams=streams) as run:
        for stream, sequence in ((0, 0), (1, 0), (0, 1)):
            run.feed({"detections": found()}, FrameHeader(stream=stream, sequence=sequence))
    with file.open("a") as broken:
        broken.write(half)
    with writing(file, restarts=1, streams=streams) as run:
        for stream, sequence in ((0, 1), (1, 1), (0, 2)):
            run.feed({"detections": found()}, FrameHeader(stream=stream, sequence=sequence))
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    told = [(line["stream"], line["frame"]) for line in lines]
    assert told == [("front", 0), ("back", 0), ("front", 1), ("back", 1), ("front", 2)]

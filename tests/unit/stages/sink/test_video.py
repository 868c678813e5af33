import logging
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import av
import numpy as np
import pytest

from edgert.errors import UserError
from edgert.pipeline.adapter import read_as
from edgert.stages.harness import opened
from edgert.stages.sink.video import VideoSink
from edgert.tensor import FrameHeader, PortSpec, TensorSpec, image_port
from edgert.transport.address import Array

from .ports import CLASSES, DETECTIONS, LINES, MASKS, POSES, classed, found, plan_context, pose

MS = 1_000_000
SIZE = (96, 64)


def recording(
    path: Path, pixel_format: str = "i420", size: Any = SIZE, restarts: int = 0, **settings: Any
) -> Any:
    image = image_port(*size, (pixel_format,), {"fps": 25.0})
    return opened(
        VideoSink,
        {"path": str(path), **settings},
        {"image": image, "detections": DETECTIONS},
        plan_context(path.parent),
        restarts=restarts,
    )


def grey(width: int, height: int, value: int = 60) -> dict[str, Array]:
    half = ((height + 1) // 2, (width + 1) // 2)
    return {
        "y": np.full((height, width), value, np.uint8),
        "u": np.full(half, 128, np.uint8),
        "v": np.full(half, 128, np.uint8),
    }


def header(number: int, size: tuple[int, int] = SIZE, **more: Any) -> FrameHeader:
    known = {"pts_ns": number * 40 * MS, "width": size[0], "height": size[1]}
    return FrameHeader(sequence=number, **{**known, **more})


def frames_of(path: Path) -> list[av.VideoFrame]:
    with av.open(str(path)) as container:
        return list(container.decode(video=0))


def test_a_file_has_one_writer_at_a_time(tmp_path: Path) -> None:
    path = tmp_path / "out.mp4"
    with recording(path) as first:
        first.feed({"image": grey(*SIZE), "detections": found()}, header(0))
        with pytest.raises(UserError, match="is being written by another"), recording(path):
            pass
    assert len(frames_of(path)) == 1


@pytest.mark.parametrize("name", ["out.mp4", "out.mkv"])
@pytest.mark.parametrize("codec", ["h264", "mpeg4"])
def test_every_frame_is_there_with_its_own_time(tmp_path: Path, name: str, codec: str) -> None:
    times = [0, 40, 80, 180, 213, 1000]
    with recording(tmp_path / name, codec=codec) as run:
        for number, ms in enumerate(times):
            pair = {"image": grey(*SIZE, 40 + 30 * number), "detections": found()}
            run.feed(pair, header(number, pts_ns=ms * MS))
        assert run.stage.context.copied_bytes == len(times) * 96 * 64 * 3 // 2
    frames = frames_of(tmp_path / name)
    assert [round(frame.time * 1000) for frame in frames] == times
    shades = [frame.to_ndarray()[:64].mean() for frame in frames]
    np.testing.assert_allclose(shades, [40 + 30 * n for n in range(len(times))], atol=3)


def test_a_camera_that_was_gone_leaves_a_gap_and_no_jump(tmp_path: Path) -> None:
    """Its times begin anew; the file's go on as long after as it really was away."""
    ends = [(0, 0, 0), (0, 40, 40), (1, 0, 1000), (1, 40, 1040), (2, 500, 1500)]
    with recording(tmp_path / "out.mp4") as run:
        for number, (epoch, pts, captured) in enumerate(ends):
            more = {"epoch": epoch, "pts_ns": pts * MS, "captured_ns": captured * MS}
            run.feed({"image": grey(*SIZE), "detections": found()}, header(number, **more))
    times = [round(frame.time * 1000) for frame in frames_of(tmp_path / "out.mp4")]
    assert times == [0, 40, 1000, 1040, 1500]


def test_boxes_are_drawn_and_named_in_the_colour_of_their_class(tmp_path: Path) -> None:
    size = (320, 240)
    with recording(tmp_path / "out.mp4", size=size, quality=5) as run:
        pair = {"image": grey(*size), "detections": found((100, 80, 200, 180), class_id=1)}
        run.feed(pair, header(0, size))
    (frame,) = frames_of(tmp_path / "out.mp4")
    y = frame.to_ndarray()[:240].astype(int)
    assert abs(y[130, 100] - 60) > 30  # left edge
    assert abs(y[180, 150] - 60) > 30  # lower edge
    assert abs(y[130, 150] - 60) < 5  # inside
    assert y[68:78, 102:150].std() > 10  # the label's letters


def test_boxes_find_their_place_on_an_image_that_was_scaled_down(tmp_path: Path) -> None:
    """Boxes are in pixels of the source; the image in the slot is half of it."""
    size = (320, 240)
    scaled = header(0, (640, 480), transform=(2.0, 0.0, 0.0, 0.0, 2.0, 0.0))
    with recording(tmp_path / "out.mp4", size=size, quality=5) as run:
        run.feed({"image": grey(*size), "detections": found((200, 160, 400, 360))}, scaled)
    (frame,) = frames_of(tmp_path / "out.mp4")
    assert abs(int(frame.to_ndarray()[130, 200]) - 60) > 30


def test_landmarks_are_drawn_wherever_they_are(tmp_path: Path) -> None:
    size = (320, 240)
    points = np.array([[[150, 130], [1e30, -1e30]]], np.float32)
    tensors = {**DETECTIONS.tensors, "landmarks": TensorSpec("f32", (10, 2, 2))}
    faces = PortSpec("detections", tensors, attributes=DETECTIONS.attributes)
    inputs = {"image": image_port(*size, attributes={"fps": 25.0}), "detections": faces}
    settings = {"path": str(tmp_path / "out.mp4"), "quality": 5}
    with opened(VideoSink, settings, inputs, plan_context(tmp_path)) as run:
        face = {**found((100, 80, 200, 180)), "landmarks": points}
        run.feed({"image": grey(*size), "detections": face}, header(0, size))
    (frame,) = frames_of(tmp_path / "out.mp4")
    y = frame.to_ndarray()[:240].astype(int)
    assert abs(y[130, 150] - 60) > 15
    assert abs(y[150, 150] - 60) < 5


def test_poses_are_drawn_where_they_are_sure(tmp_path: Path) -> None:
    size = (320, 240)
    image = image_port(*size, attributes={"fps": 25.0})
    settings = {"path": str(tmp_path / "out.mp4"), "quality": 5}
    inputs = {"image": image, "poses": POSES}
    with opened(VideoSink, settings, inputs, plan_context(tmp_path)) as run:
        shoulders = pose((160, 20, 0.1), (100, 100, 0.9), (200, 100, 0.9))
        run.feed({"image": grey(*size), "poses": shoulders}, header(0, size))
    (frame,) = frames_of(tmp_path / "out.mp4")
    y = frame.to_ndarray()[:240].astype(int)
    assert abs(y[100, 150] - 60) > 30  # the line between the shoulders
    assert abs(y[20, 160] - 60) < 5  # a nose that is only guessed


def test_a_mask_is_laid_over_its_part_of_the_picture(tmp_path: Path) -> None:
    """The mask has half the picture's resolution, and reaches beyond its right edge."""
    size = (318, 240)
    image = image_port(*size, attributes={"fps": 25.0})
    settings = {"path": str(tmp_path / "out.mp4"), "quality": 5}
    mask = np.zeros((120, 160), np.uint8)
    mask[50:, 80:] = 1
    to_source = (2.0, 0.0, 0.0, 0.0, 2.0, 0.0)
    with opened(
        VideoSink, settings, {"image": image, "segmentation": MASKS}, plan_context(tmp_path)
    ) as run:
        masks = run.inputs["segmentation"]
        found_here = masks.fill({"mask": mask}, header(0, size, transform=to_source))
        picture = run.inputs["image"].fill(grey(*size), header(0, size))
        run.stage.process({"image": picture, "segmentation": found_here}, {})
    (frame,) = frames_of(tmp_path / "out.mp4")
    y = frame.to_ndarray()[:240].astype(int)
    assert abs(y[104:, 164:] - 60).min() > 10
    assert abs(y[:96, :] - 60).max() < 5
    assert abs(y[:, :156] - 60).max() < 5


def test_classes_are_written_one_below_the_other(tmp_path: Path) -> None:
    size = (320, 240)
    inputs = {"image": image_port(*size, attributes={"fps": 25.0}), "classification": CLASSES}
    settings = {"path": str(tmp_path / "out.mp4"), "quality": 5}
    with opened(VideoSink, settings, inputs, plan_context(tmp_path)) as run:
        two = {"image": grey(*size), "classification": classed((1, 0.8), (7, 0.1))}
        run.feed(two, header(0, size))
        run.feed({"image": grey(*size), "classification": classed((1, 0.8))}, header(1, size))
    first, second = (
        frame.to_ndarray()[:240].astype(int) for frame in frames_of(tmp_path / "out.mp4")
    )
    for y in (first, second):
        assert y[1:12, 2:80].std() > 10  # letters
        assert abs(y[60:, :] - 60).max() < 12
    assert first[18:26, 2:80].std() > 10
    assert second[18:26, 2:80].std() < 5


def test_lines_of_text_are_drawn_with_what_they_say(tmp_path: Path) -> None:
    size = (320, 240)
    image = image_port(*size, attributes={"fps": 25.0})
    settings = {"path": str(tmp_path / "out.mp4"), "quality": 5}
    corners = np.array([[(60, 100), (200, 100), (200, 140), (60, 140)]], np.float32)
    inputs = {"image": image, "lines": LINES}
    with opened(VideoSink, settings, inputs, plan_context(tmp_path)) as run:
        slot = run.inputs["lines"]
        slot.loan.set_metadata({"text": ["EXIT"], "not_read": 0})
        scores = np.ones(1, np.float32)
        lines = slot.fill({"corners": corners, "scores": scores}, header(0, size))
        picture = run.inputs["image"].fill(grey(*size), header(0, size))
        run.stage.process({"image": picture, "lines": lines}, {})
    (frame,) = frames_of(tmp_path / "out.mp4")
    y = frame.to_ndarray()[:240].astype(int)
    assert abs(y[120, 60] - 60) > 10  # left edge
    assert abs(y[120, 130] - 60) < 5  # inside
    assert y[84:98, 60:100].std() > 20  # the letters


def test_without_results_the_video_is_recorded_as_it_is(tmp_path: Path) -> None:
    image = image_port(*SIZE, attributes={"fps": 25.0})
    settings = {"path": str(tmp_path / "out.mkv")}
    with opened(VideoSink, settings, {"image": image}, plan_context(tmp_path)) as run:
        run.feed({"image": grey(*SIZE)}, header(0))
    (frame,) = frames_of(tmp_path / "out.mkv")
    np.testing.assert_allclose(frame.to_ndarray(), [[60] * 96] * 64 + [[128] * 96] * 32, atol=3)


@pytest.mark.parametrize("size", [(97, 63), (33, 64), (2, 3)])
def test_odd_sizes_grow_by_one(tmp_path: Path, size: tuple[int, int]) -> None:
    with recording(tmp_path / "out.mkv", size=size) as run:
        run.feed({"image": grey(*size), "detections": found()}, header(0, size))
    (frame,) = frames_of(tmp_path / "out.mkv")
    assert (frame.width, frame.height) == (size[0] + size[0] % 2, size[1] + size[1] % 2)
    np.testing.assert_allclose(frame.to_ndarray()[: frame.height], 60, atol=3)


@pytest.mark.parametrize("size", [SIZE, (97, 63)])
@pytest.mark.parametrize(
    ("pixel_format", "tensors", "expected"),
    [
        ("bgr24", {"bgr": (0, 0, 255)}, (81, 90, 240)),
        ("rgb24", {"rgb": (255, 0, 0)}, (81, 90, 240)),
        ("gray8", {"y": 81}, (81, 128, 128)),
        ("nv12", {"y": 81, "uv": (90, 240)}, (81, 90, 240)),
    ],
)
def test_every_pixel_format_is_recorded(
    tmp_path: Path, pixel_format: str, tensors: Any, expected: tuple[int, ...], size: Any
) -> None:
    path = tmp_path / "out.mkv"
    with recording(path, pixel_format, size, quality=5) as run:
        shapes = {
            name: spec.shape for name, spec in run.stage.context.inputs["image"].tensors.items()
        }
        image = {name: np.full(shapes[name], value, np.uint8) for name, value in tensors.items()}
        run.feed(
            {"image": image, "detections": found()}, header(0, size, pixel_format=pixel_format)
        )
    (frame,) = frames_of(path)
    planes = [np.frombuffer(plane, np.uint8)[: plane.width].mean() for plane in frame.planes]
    np.testing.assert_allclose(planes, expected, atol=3)


def test_colours_are_tagged_as_they_are(tmp_path: Path) -> None:
    with recording(tmp_path / "out.mp4") as run:
        tagged = header(0, colour_matrix="bt709", colour_range="full")
        run.feed({"image": grey(*SIZE), "detections": found()}, tagged)
    (frame,) = frames_of(tmp_path / "out.mp4")
    assert (int(frame.colorspace), int(frame.color_range)) == (1, 2)


def test_a_frame_of_another_size_is_scaled_to_the_first(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    with recording(tmp_path / "out.mkv") as run:
        for number, size in enumerate([SIZE, (48, 32)]):
            run.feed({"image": grey(*size), "detections": found()}, header(number, size))
    assert [(f.width, f.height) for f in frames_of(tmp_path / "out.mkv")] == [SIZE] * 2
    assert "scaled: 1 frame of another size" in caplog.text


def test_a_run_without_frames_leaves_no_file_that_pretends(tmp_path: Path) -> None:
    (tmp_path / "out.mp4").write_text("an older recording")
    with recording(tmp_path / "out.mp4"):
        pass
    assert not (tmp_path / "out.mp4").exists()


KILLED = """
import sys, os, signal
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from sink.test_video import *
with recording(Path(sys.argv[2])) as run:
    for number in range(200):
        pair = {"image": grey(*SIZE, number), "detections": found((1, 2, 30, 40))}
        run.feed(pair, header(number))
    os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.parametrize("name", ["out.mp4", "out.mkv"])
def test_even_a_kill_leaves_a_file_that_plays(tmp_path: Path, name: str) -> None:
    here = Path(__file__).parent.parent
    command = [sys.executable, "-c", KILLED, str(here), str(tmp_path / name)]
    ended = subprocess.run(command, check=False, timeout=60)
    assert ended.returncode == -signal.SIGKILL
    assert len(frames_of(tmp_path / name)) >= 100


@pytest.mark.parametrize(
    ("path", "streams", "expected"),
    [
        ("out.avi", ("camera",), "'.avi' is not supported. Name it .mp4 or .mkv"),
        ("out.mp4", ("a", "b"), "2 streams into one file (a, b). Give each stream a sink.video"),
        ("gone/out.mp4", ("camera",), "there is no directory"),
    ],
)
def test_what_cannot_be_is_found_while_planning(
    tmp_path: Path, path: str, streams: tuple[str, ...], expected: str
) -> None:
    source = tmp_path / "in.mp4"
    source.write_text("a video")
    options = read_as(VideoSink.options, {"path": str(tmp_path / path)})
    image = image_port(*SIZE, attributes={"path": str(source)})
    with pytest.raises(UserError) as caught:
        VideoSink.plan(
            options,
            {"image": image, "detections": DETECTIONS},
            plan_context(tmp_path, streams),
        )
    assert expected in str(caught.value)
    assert os.listdir(tmp_path) == ["in.mp4"]  # noqa: PTH208


def test_after_a_restart_another_file_is_recorded(tmp_path: Path) -> None:
    path = tmp_path / "out.mp4"
    for restarts in (0, 2):
        with recording(path, restarts=restarts) as run:
            for number in range(restarts + 1):
                run.feed({"image": grey(*SIZE), "detections": found()}, header(number))
    assert sorted(file.name for file in tmp_path.iterdir()) == ["out-2.mp4", "out.mp4"]
    assert len(frames_of(path)) == 1
    assert len(frames_of(tmp_path / "out-2.mp4")) == 3

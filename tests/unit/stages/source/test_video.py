import io
import logging
import tracemalloc
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import av
import numpy as np
import pytest

from edgert.errors import FrameLostError, MediaError
from edgert.pipeline.adapter import read_as
from edgert.stages.harness import StageRun, opened
from edgert.stages.source.container import missing_bytes
from edgert.stages.source.video import VideoSource
from edgert.tensor import FrameHeader

from .media import (
    all_frames,
    h264,
    make_video,
    paint,
    plan_context,
    plane_shape,
    yuv_frame,
)


def playing(path: Path, **settings: Any) -> Any:
    return opened(VideoSource, {"uri": path.name, **settings}, {}, plan_context(path.parent))


def headers(run: StageRun) -> list[FrameHeader]:
    found = []
    while (out := run.grab()) is not None:
        found.append(out["image"].header)
    return found


def grabbed(run: StageRun) -> FrameHeader:
    out = run.grab()
    assert out is not None
    return out["image"].header


def drain(run: StageRun) -> tuple[int, list[str], str]:
    """Frames given, reasons of those lost, and the fault at the end."""
    given, lost = 0, []
    while True:
        try:
            if run.grab() is None:
                return given, lost, ""
            given += 1
        except FrameLostError as error:
            lost.append(str(error))
        except MediaError as error:
            assert run.grab() is None
            return given, lost, str(error)


# Pixels


@pytest.mark.parametrize(
    "size", [(642, 30), (404, 30), (1366, 20), (321, 241), (1, 1), (3, 2), (4095, 1)]
)
def test_padded_rows_and_odd_sizes_arrive_pixel_for_pixel(
    tmp_path: Path, size: tuple[int, int]
) -> None:
    path = make_video(tmp_path / "odd.mkv", size, pts=range(2))
    with playing(path) as run:
        frames = all_frames(run)
    assert len(frames) == 2
    for number, planes in enumerate(frames):
        for name in ("y", "u", "v"):
            shape = plane_shape(name, *size)
            np.testing.assert_array_equal(planes[name], paint(number, name, *shape))


@pytest.mark.parametrize(("rotation", "turns"), [(90.0, 1), (180.0, 2), (-90.0, 3), (0.0, 0)])
def test_a_rotated_video_arrives_upright(tmp_path: Path, rotation: float, turns: int) -> None:
    path = make_video(
        tmp_path / "phone.mp4",
        (66, 38),
        codec="libx264",
        options={"qp": "0", "bf": "0"},
        rotation=rotation,
    )
    with playing(path) as run:
        out = run.grab()
        assert out is not None
        header = out["image"].header
        planes = {name: array.copy() for name, array in out["image"].tensors.items()}
        del out
    assert (header.width, header.height) == ((38, 66) if turns % 2 else (66, 38))
    for name in ("y", "u", "v"):
        flat = paint(0, name, *plane_shape(name, 66, 38))
        np.testing.assert_array_equal(planes[name], np.rot90(flat, turns))


@pytest.mark.parametrize("pixel_format", ["bgr24", "rgb24", "gray"])
def test_formats_of_ours_are_copied_as_they_are(tmp_path: Path, pixel_format: str) -> None:
    pixels = np.arange(11 * 7 * (1 if pixel_format == "gray" else 3), dtype=np.uint8)
    shape = (7, 11) if pixel_format == "gray" else (7, 11, 3)
    frame = av.VideoFrame.from_ndarray(pixels.reshape(shape), format=pixel_format)
    path = make_video(tmp_path / "raw.nut", codec="rawvideo", pts=[0], frames=iter([frame]))
    with playing(path) as run:
        out = run.grab()
        assert out is not None
        (plane,) = out["image"].tensors.values()
        np.testing.assert_array_equal(plane, pixels.reshape(shape))
        assert out["image"].header.pixel_format == {"gray": "gray8"}.get(pixel_format, pixel_format)
        assert run.stage.context.copied_bytes == 0


def test_nv12_keeps_its_interleaved_chroma(tmp_path: Path) -> None:
    frame = yuv_frame(0, 10, 6).reformat(format="nv12")
    path = make_video(tmp_path / "nv12.mkv", codec="rawvideo", pts=[0], frames=iter([frame]))
    with playing(path) as run:
        out = run.grab()
        assert out is not None
        np.testing.assert_array_equal(out["image"].tensors["uv"][..., 0], paint(0, "u", 3, 5))
        np.testing.assert_array_equal(out["image"].tensors["uv"][..., 1], paint(0, "v", 3, 5))


def test_other_formats_become_i420_and_the_detour_is_counted(tmp_path: Path) -> None:
    red = np.zeros((48, 64, 4), np.uint8)
    red[..., 2], red[..., 3] = 255, 255
    frame = av.VideoFrame.from_ndarray(red, format="bgra")
    path = make_video(tmp_path / "red.mkv", codec="ffv1", pts=[0], frames=iter([frame]))
    with playing(path) as run:
        out = run.grab()
        assert out is not None
        found = [int(out["image"].tensors[name].mean()) for name in ("y", "u", "v")]
        np.testing.assert_allclose(found, [81, 90, 240], atol=1)  # BT.601, limited range
        assert out["image"].header.pixel_format == "i420"
        assert run.stage.context.copied_bytes == 64 * 48 * 3 // 2


def test_rows_from_the_bottom_up_are_put_right(tmp_path: Path) -> None:
    pixels = np.full((6, 8, 3), 128, np.uint8)
    pixels[:2] = 0  # the top is black
    frame = av.VideoFrame.from_ndarray(pixels, format="bgr24")
    path = make_video(tmp_path / "a.avi", codec="rawvideo", pts=[0], frames=iter([frame]))
    data = bytearray(path.read_bytes())
    height_at = data.find(b"strf") + 8 + 8
    assert int.from_bytes(data[height_at : height_at + 4], "little", signed=True) == -6
    data[height_at : height_at + 4] = (6).to_bytes(4, "little")
    path.write_bytes(data)
    with playing(path) as run:
        (planes,) = all_frames(run)
    assert (planes["y"][:, 0] > 16).tolist() == [True] * 4 + [False] * 2


def test_ten_bits_become_eight(tmp_path: Path) -> None:
    frame = yuv_frame(0, 32, 16).reformat(format="yuv420p10le")
    path = make_video(tmp_path / "ten.mkv", codec="ffv1", pts=[0], frames=iter([frame]))
    with playing(path) as run:
        (planes,) = all_frames(run)
    np.testing.assert_allclose(planes["y"], paint(0, "y", 16, 32), atol=1)


@pytest.mark.parametrize(
    ("size", "tags", "expected"),
    [
        ((64, 48), {}, ("bt601", "limited")),
        ((1280, 720), {}, ("bt709", "limited")),
        ((64, 48), {"colorspace": 1, "color_range": 2}, ("bt709", "full")),
        ((1280, 720), {"colorspace": 5}, ("bt601", "limited")),
        ((64, 48), {"colorspace": 9}, ("bt2020", "limited")),
    ],
)
def test_colours_are_those_of_the_file(
    tmp_path: Path, size: tuple[int, int], tags: dict[str, int], expected: tuple[str, str]
) -> None:
    frame = yuv_frame(0, *size)
    path = tmp_path / "tagged.mp4"
    with av.open(str(path), "w") as container:
        stream = container.add_stream("libx264", rate=25)
        stream.width, stream.height, stream.pix_fmt = *size, "yuv420p"
        for name, value in tags.items():
            setattr(stream.codec_context, name, value)
            setattr(frame, name, value)
        container.mux(stream.encode(frame))
        container.mux(stream.encode())
    with playing(path) as run:
        (header,) = headers(run)
    assert (header.colour_matrix, header.colour_range) == expected


def test_a_frame_larger_than_max_size_is_scaled_and_the_header_leads_back(tmp_path: Path) -> None:
    path = make_video(tmp_path / "big.mkv", (640, 360), pts=range(2))
    with playing(path, max_size=[200, 200]) as run:
        out = run.grab()
        assert out is not None
        header, image = out["image"].header, out["image"].tensors["y"]
        assert image.shape == (112, 200)
        assert (header.width, header.height) == (640, 360)
        assert header.transform == pytest.approx((3.2, 0, 0, 0, 360 / 112, 0))
        assert run.stage._from.painter.scaled == 1  # type: ignore[attr-defined]
        del out, image


def test_a_size_that_changes_in_mid_stream_is_followed(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "changes.ts"
    parts = [
        h264(tmp_path / f"{n}.ts", 5, size=size) for n, size in enumerate([(64, 48), (96, 80)])
    ]
    path.write_bytes(b"".join(part.read_bytes() for part in parts))
    caplog.set_level(logging.WARNING)
    with playing(path) as run:
        found = headers(run)
    assert [(h.width, h.height) for h in found] == [(64, 48)] * 5 + [(96, 80)] * 5
    assert found[0].transform[0] == 1.0
    assert found[-1].transform[0] == pytest.approx(96 / 57)
    assert "5 frames larger than the slot" in caplog.text


# Time


def test_variable_frame_rate_keeps_the_times_of_the_container(tmp_path: Path) -> None:
    times = [*range(0, 1000, 100), *range(1000, 2000, 33)]  # 10 and 30 fps, in ms
    path = make_video(tmp_path / "vfr.mp4", pts=times, codec="mpeg4", time_base=Fraction(1, 1000))
    with av.open(str(path)) as container:
        packets = sorted(p.pts * p.time_base for p in container.demux(video=0) if p.pts is not None)
    with playing(path) as run:
        found = [header.pts_ns for header in headers(run)]
    assert found == [int(time * 10**9) for time in packets]
    assert found == [time * 10**6 for time in times]


def test_times_of_frames_that_are_reordered_grow(tmp_path: Path) -> None:
    with playing(h264(tmp_path / "b.mp4", 50)) as run:
        found = [header.pts_ns for header in headers(run)]
    assert found == [number * 40_000_000 for number in range(50)]


def test_times_that_do_not_grow_are_counted_and_logged_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "jumps.mkv"
    with av.open(str(path), "w") as container:
        stream = container.add_stream("rawvideo", rate=25)
        stream.width, stream.height, stream.pix_fmt = 64, 48, "yuv420p"
        for number, pts in enumerate((0, 33, 33, 10, 66)):
            for packet in stream.encode(yuv_frame(number, 64, 48)):
                packet.pts, packet.dts, packet.time_base = pts, number, Fraction(1, 1000)
                container.mux(packet)
    caplog.set_level(logging.WARNING)
    with playing(path) as run:
        found = [header.pts_ns for header in headers(run)]
    assert found == [0, 33_000_000, 33_000_001, 33_000_002, 66_000_000]
    assert caplog.text.count("did not grow") == 1


def test_a_file_can_be_played_twice(tmp_path: Path) -> None:
    path = make_video(tmp_path / "twice.mkv", pts=range(3))
    with playing(path, loop=2) as run:
        found = [header.pts_ns for header in headers(run)]
    assert found == [number * 40_000_000 for number in range(6)]


# Damage


def test_a_damaged_stretch_loses_frames_and_the_rest_goes_on(tmp_path: Path) -> None:
    path = h264(tmp_path / "damaged.mp4", 250)
    data = bytearray(path.read_bytes())
    noise = np.random.default_rng(0).integers(0, 256, 3000, np.uint8)
    data[len(data) // 2 : len(data) // 2 + 3000] = noise.tobytes()
    path.write_bytes(data)
    with playing(path) as run:
        given, lost, fault = drain(run)
    assert given + len(lost) == 250
    assert given > 200
    assert any("could not be decoded" in reason for reason in lost)
    assert fault == ""


def test_frames_that_the_decoder_patches_up_are_marked_and_counted(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = make_video(tmp_path / "damaged.avi", pts=range(60), codec="mpeg4", size=(640, 480))
    data = bytearray(path.read_bytes())
    for place in range(len(data) // 4, len(data) // 2, 1000):
        data[place : place + 20] = bytes(20)
    path.write_bytes(data)
    caplog.set_level(logging.WARNING)
    with playing(path) as run:
        marked = sum(header.is_partial for header in headers(run))
    assert marked > 0
    assert f"{marked} frames damaged: decoded as far as that goes" in caplog.text


@pytest.mark.parametrize("part", [0.2, 0.5, 0.9])
def test_a_truncated_mp4_is_a_fault_at_its_end(tmp_path: Path, part: float) -> None:
    path = h264(tmp_path / "cut.mp4", 250)
    data = path.read_bytes()
    path.write_bytes(data[: int(len(data) * part)])
    with playing(path) as run:
        given, _, fault = drain(run)
    assert 0 < given < 250
    assert f"ends early: {given} of 250 frames could be read" in fault


@pytest.mark.parametrize("name", ["cut.mkv", "cut.avi"])
def test_a_truncated_file_of_another_kind_too(tmp_path: Path, name: str) -> None:
    path = make_video(tmp_path / name, pts=range(100), codec="mpeg4")
    data = path.read_bytes()
    path.write_bytes(data[: len(data) // 2])
    with playing(path) as run:
        given, _, fault = drain(run)
    assert 0 < given < 100
    assert f"ends early: {given} " in fault


def test_a_cut_avi_that_looks_as_long_as_it_is(tmp_path: Path) -> None:
    """FFmpeg takes the duration of an AVI without its index from the file, not from the head."""
    path = make_video(tmp_path / "cut.avi", pts=range(100), codec="mpeg4", size=(640, 480))
    data = path.read_bytes()
    path.write_bytes(data[: data.index(b"idx1") * 9 // 10])
    with playing(path) as run:
        given, _, fault = drain(run)
    assert 0 < given < 100
    assert f"ends early: {given} of 100 frames" in fault


def test_frames_that_a_damaged_avi_has_lost_in_its_middle_are_counted(tmp_path: Path) -> None:
    """Without the head of a chunk its demuxer passes over the frame, and says nothing of it."""
    path = make_video(tmp_path / "spoilt.avi", pts=range(100), codec="mpeg4", size=(640, 480))
    data = bytearray(path.read_bytes())
    middle = data.index(b"00dc", len(data) // 3)
    data[middle : middle + 64] = bytes(64)
    index = data.index(b"idx1")
    data[index : index + 4] = b"JUNK"
    path.write_bytes(data)
    with playing(path) as run:
        given, reasons, fault = drain(run)
    assert fault == ""
    assert given + len(reasons) == 100
    assert 95 < given < 100
    assert set(reasons) == {"the file is damaged where it should be"}


def test_an_avi_that_was_never_closed_is_not_said_to_be_cut(tmp_path: Path) -> None:
    path = make_video(tmp_path / "open.avi", pts=range(30), codec="mpeg4")
    data = bytearray(path.read_bytes())
    data[4:8] = bytes(4)
    path.write_bytes(data)
    assert missing_bytes(str(path)) is None


def test_the_bytes_that_an_avi_lacks(tmp_path: Path) -> None:
    path = make_video(tmp_path / "cut.avi", pts=range(30), codec="mpeg4")
    assert missing_bytes(str(path)) == 0
    path.write_bytes(path.read_bytes()[:-100])
    assert missing_bytes(str(path)) == 100


@pytest.mark.parametrize("name", ["whole.mkv", "whole.avi", "whole.mp4"])
def test_a_whole_file_ends_quietly(tmp_path: Path, name: str) -> None:
    path = make_video(tmp_path / name, pts=range(30), codec="mpeg4")
    with playing(path) as run:
        assert drain(run) == (30, [], "")


def test_a_recording_that_does_not_know_its_length_ends_quietly(tmp_path: Path) -> None:
    sink = io.BytesIO()
    with av.open(sink, "w", format="matroska", options={"live": "1"}) as container:
        stream = container.add_stream("mpeg4", rate=25)
        stream.width, stream.height, stream.pix_fmt = 64, 48, "yuv420p"
        for number in range(5):
            container.mux(stream.encode(yuv_frame(number, 64, 48)))
        container.mux(stream.encode())
    path = tmp_path / "live.mkv"
    path.write_bytes(sink.getvalue())
    with playing(path) as run:
        assert drain(run) == (5, [], "")


# Faults found while planning


def write_text(path: Path) -> None:
    path.write_text("not a video\n" * 100)


def write_audio(path: Path) -> None:
    with av.open(str(path), "w", format="wav") as container:
        stream = container.add_stream("pcm_s16le", rate=8000)
        sound = av.AudioFrame.from_ndarray(np.zeros((1, 800), np.int16), layout="mono")
        sound.sample_rate = 8000
        container.mux(stream.encode(sound))


def write_image(path: Path) -> None:
    from PIL import Image

    Image.new("RGB", (8, 8)).save(path, "PNG")


@pytest.mark.parametrize(
    ("name", "make", "expected"),
    [
        ("missing.mp4", None, "no such file or directory. Check `uri` (or --input)"),
        ("empty.mp4", lambda path: path.write_bytes(b""), "is empty"),
        ("folder", Path.mkdir, "is a directory. Use `kind: source.images`"),
        ("noise.mp4", lambda path: path.write_bytes(bytes(range(256)) * 20), "is not a video"),
        ("text.txt", write_text, "is not a video"),
        ("sound.wav", write_audio, "has no video stream"),
        ("still.png", write_image, "Use `kind: source.images`"),
    ],
)
def test_what_is_not_a_video_is_refused_with_a_mend(
    tmp_path: Path, name: str, make: Any, expected: str
) -> None:
    path = tmp_path / name
    if make:
        make(path)
    with pytest.raises(MediaError) as caught, playing(path):
        pass
    assert f"stage 'camera', file '{path}': " in str(caught.value)
    assert expected in str(caught.value)
    assert caught.value.faults[0].mend


def test_the_port_tells_what_the_file_is(tmp_path: Path) -> None:
    path = make_video(tmp_path / "a.mp4", (64, 48), codec="mpeg4", rotation=90.0)
    options = read_as(VideoSource.options, {"uri": "a.mp4"})
    port = VideoSource.plan(options, {}, plan_context(tmp_path))["image"]
    assert port.attributes == {
        "path": str(path),
        "width": 48,
        "height": 64,
        "fps": 25.0,
        "frames": 10,
        "rotation": 90,
        "codec": "mpeg4",
    }
    assert port.tensors["y"].shape == (64, 48)


# Cost


def test_no_frame_sized_array_is_made(vtest: Path) -> None:
    with playing(vtest) as run:
        for _ in range(5):
            run.grab()
        source, loans = run.stage, {name: slot.loan for name, slot in run.outputs.items()}
        tracemalloc.start()
        try:
            for _ in range(5):
                before = tracemalloc.get_traced_memory()[0]
                tracemalloc.reset_peak()
                source.grab()  # type: ignore[attr-defined]
                source.write(loans)  # type: ignore[attr-defined]
                assert tracemalloc.get_traced_memory()[1] - before < 8192
        finally:
            tracemalloc.stop()


def test_a_slot_too_small_loses_the_frame_instead_of_half_of_it(tmp_path: Path) -> None:
    """The slot is only ever committed by the caller after ``write`` has returned."""
    path = make_video(tmp_path / "a.mkv", (64, 48), pts=range(3))
    with playing(path) as run, playing(make_video(tmp_path / "b.mkv", (32, 24))) as small:
        run.stage.grab()  # type: ignore[attr-defined]
        with pytest.raises(FrameLostError, match="its slot has"):
            run.stage.write({"image": small.outputs["image"].loan})  # type: ignore[attr-defined]
        assert run.grab() is not None


PLAYLISTS = {
    "l.ffconcat": "ffconcat version 1.0\nfile other.mp4\n",
    "l.m3u8": "#EXTM3U\n#EXT-X-TARGETDURATION:1\n#EXTINF:1,\nother.mp4\n#EXT-X-ENDLIST\n",
}


@pytest.mark.parametrize("name", PLAYLISTS)
def test_a_playlist_does_not_lead_to_other_files(tmp_path: Path, name: str) -> None:
    make_video(tmp_path / "other.mp4", codec="mpeg4")
    (tmp_path / name).write_text(PLAYLISTS[name])
    with (
        pytest.raises(MediaError, match="or a playlist that names others"),
        playing(tmp_path / name),
    ):
        pass


# Going on after a restart


@pytest.mark.parametrize("number", [3, 100, 101, 124, 125, 149, 150])
@pytest.mark.parametrize("suffix", ["mp4", "mkv", "avi"])
def test_it_goes_on_at_any_frame(tmp_path: Path, suffix: str, number: int) -> None:
    """The very frame, its time, and whole accounts at the end."""
    made = {"codec": "libx264", "options": {"g": "25", "bf": "2", "qp": "0", "preset": "fast"}}
    if suffix == "avi":
        made = {"codec": "mpeg4", "options": {"g": "25"}}
    path = make_video(tmp_path / f"long.{suffix}", (64, 48), pts=range(150), **made)
    with playing(path) as run:
        whole = [(h.pts_ns, planes["y"].tobytes()) for h, planes in with_planes(run)]
    assert len(whole) == 150
    with playing(path) as run:
        run.stage.resume(number)
        rest = [(h.pts_ns, planes["y"].tobytes()) for h, planes in with_planes(run)]
    assert rest == whole[number:]


def with_planes(run: StageRun) -> Iterator[tuple[FrameHeader, dict[str, Any]]]:
    while (out := run.grab()) is not None:
        sample = out["image"]
        yield sample.header, {name: array.copy() for name, array in sample.tensors.items()}


@pytest.mark.parametrize("number", [119, 120, 130, 179, 180])
@pytest.mark.parametrize("suffix", ["mkv", "mp4"])
def test_a_looped_file_goes_on_in_a_later_play(tmp_path: Path, suffix: str, number: int) -> None:
    path = make_video(tmp_path / f"short.{suffix}", pts=range(60))
    with playing(path, loop=3) as run:
        whole = [header.pts_ns for header in headers(run)]
    assert len(whole) == 180
    with playing(path, loop=3) as run:
        run.stage.resume(number)
        assert [header.pts_ns for header in headers(run)] == whole[number:]


def test_plays_before_the_last_are_not_decoded_again(tmp_path: Path) -> None:
    """They are so many that it would not end."""
    path = make_video(tmp_path / "short.mkv", pts=range(60))
    with playing(path, loop=10**9) as run:
        start_ns, *second = [grabbed(run).pts_ns for _ in range(62)][60:]
    with playing(path, loop=10**9) as run:
        run.stage.resume(60 * (10**9 - 1))
        last = [header.pts_ns for header in headers(run)]
    assert len(last) == 60
    assert last[0] == start_ns * (10**9 - 1)
    assert last[1] - last[0] == second[0] - start_ns

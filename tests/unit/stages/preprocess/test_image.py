"""Pixels in a model's input, against plain references in floating point."""

from __future__ import annotations

import tracemalloc

import cv2
import numpy as np
import pytest

from edgert.errors import FrameLostError
from edgert.stages.geometry import map_point
from edgert.stages.preprocess.geometry import place
from edgert.tensor import FrameHeader

SIZES = [(1920, 1080), (1080, 1920), (333, 517), (100, 50), (416, 416)]
ODD_SIZES = [(321, 241), (1, 1), (3, 2), (2, 3), (4095, 1), (1, 4095), (417, 415)]
SHARES = {"bt601": (0.299, 0.114), "bt709": (0.2126, 0.0722), "bt2020": (0.2627, 0.0593)}


def smooth_rgb(width: int, height: int) -> np.ndarray:
    """A picture without sharp edges, so that no way of sampling chroma matters."""
    x = (np.arange(width) + 0.5) / width
    y = (np.arange(height)[:, None] + 0.5) / height
    waves = (np.sin(5 * x + 3 * y), np.cos(4 * x - 2 * y + 1), np.sin(3 * x * y + 2))
    return np.stack([127 + 90 * wave for wave in waves], axis=-1)


def to_yuv(rgb: np.ndarray, matrix: str, colour_range: str) -> np.ndarray:
    red, blue = SHARES[matrix]
    luma = rgb @ (red, 1 - red - blue, blue)
    u = (rgb[..., 2] - luma) / (2 * (1 - blue))
    v = (rgb[..., 0] - luma) / (2 * (1 - red))
    if colour_range == "limited":
        planes = (16 + luma * 219 / 255, 128 + u * 224 / 255, 128 + v * 224 / 255)
    else:
        planes = (luma, 128 + u, 128 + v)
    return np.stack(planes, axis=-1)


def bytes_of(values: np.ndarray) -> np.ndarray:
    return np.clip(np.rint(values), 0, 255).astype(np.uint8)


def planes_of(
    rgb: np.ndarray, pixel_format: str, matrix: str = "bt601", colour_range: str = "limited"
) -> dict[str, np.ndarray]:
    if pixel_format == "rgb24":
        return {"rgb": bytes_of(rgb)}
    if pixel_format == "bgr24":
        return {"bgr": bytes_of(rgb[..., ::-1])}
    yuv = to_yuv(rgb, matrix, colour_range)
    height, width = rgb.shape[:2]
    padded = np.pad(yuv[..., 1:], ((0, height % 2), (0, width % 2), (0, 0)), mode="edge")
    half = ((height + 1) // 2, (width + 1) // 2)
    chroma = bytes_of(padded.reshape(half[0], 2, half[1], 2, 2).mean((1, 3)))
    y = bytes_of(yuv[..., 0])
    if pixel_format == "gray8":
        return {"y": y}
    if pixel_format == "nv12":
        return {"y": y, "uv": chroma}
    return {"y": y, "u": chroma[..., 0], "v": chroma[..., 1]}


def from_planes(planes: dict[str, np.ndarray], matrix: str = "bt601") -> np.ndarray:
    """The picture that planes of the limited range show, in floating point."""
    if "y" not in planes:
        return planes["bgr"][..., ::-1].astype(np.float64)
    y = planes["y"].astype(np.float64)
    u, v = (planes[name] for name in "uv") if "u" in planes else np.moveaxis(planes["uv"], 2, 0)
    u, v = (cv2.resize(c.astype(np.float64), y.shape[::-1]).reshape(y.shape) for c in (u, v))
    red, blue = SHARES[matrix]
    luma, u, v = (y - 16) * 255 / 219, (u - 128) * 255 / 224, (v - 128) * 255 / 224
    r = luma + 2 * (1 - red) * v
    b = luma + 2 * (1 - blue) * u
    g = (luma - red * r - blue * b) / (1 - red - blue)
    return np.clip(np.stack([r, g, b], axis=-1), 0, 255)


def header_of(rgb: np.ndarray, pixel_format: str = "i420", **others) -> FrameHeader:
    height, width = rgb.shape[:2]
    return FrameHeader(width=width, height=height, pixel_format=pixel_format, **others)


def reference(rgb: np.ndarray, resize: str, size: tuple[int, int], pad: float) -> np.ndarray:
    placed = place(resize, (rgb.shape[1], rgb.shape[0]), size)
    picture = np.full((size[1], size[0], 3), pad, np.float64)
    small = cv2.resize(rgb, (placed.width, placed.height), interpolation=cv2.INTER_LINEAR)
    picture[placed.top : placed.top + placed.height, placed.left : placed.left + placed.width] = (
        small
    )
    return picture


@pytest.mark.parametrize("resize", ["letterbox-centre", "letterbox-top-left", "stretch"])
@pytest.mark.parametrize("size", SIZES)
def test_each_letterbox_against_a_reference(preprocess, resize, size) -> None:
    rgb = smooth_rgb(*size)
    planes = planes_of(rgb, "i420")
    expected = reference(from_planes(planes), resize, (416, 416), 114)
    with preprocess("f32", (1, 3, 416, 416), resize=resize) as run:
        out = run.feed({"image": planes}, header_of(rgb))["tensor"]
        difference = np.abs(out.tensors["images"][0].transpose(1, 2, 0) - expected)
        transform = out.header.transform
    assert difference.max() < 4
    assert difference.mean() < 1
    placed = place(resize, size, (416, 416))
    corner = map_point(transform, placed.left + placed.width, placed.top + placed.height)
    assert corner == pytest.approx(size, abs=1e-6)


@pytest.mark.parametrize("size", ODD_SIZES)
@pytest.mark.parametrize("pixel_format", ["i420", "nv12", "bgr24"])
@pytest.mark.parametrize("matrix", ["bt601", "bt709"])
def test_odd_sizes(preprocess, size, pixel_format, matrix) -> None:
    rgb = smooth_rgb(*size)
    planes = planes_of(rgb, pixel_format, matrix)
    header = header_of(rgb, pixel_format, colour_matrix=matrix)
    with preprocess("u8", (1, 201, 301, 3), (4095, 4095), resize="letterbox-top-left") as run:
        out = run.feed({"image": planes}, header)["tensor"].tensors["images"][0]
        expected = reference(from_planes(planes, matrix), "letterbox-top-left", (301, 201), 114)
        assert np.abs(out - expected).mean() < 1.5
        assert np.abs(out - expected).max() < 16  # the tiny ones, where colours are cut to 0-255


@pytest.mark.parametrize("matrix", SHARES)
@pytest.mark.parametrize("colour_range", ["limited", "full"])
@pytest.mark.parametrize("pixel_format", ["i420", "nv12"])
@pytest.mark.parametrize("colour", ["RGB", "BGR"])
def test_colours_within_two_levels(preprocess, matrix, colour_range, pixel_format, colour) -> None:
    generator = np.random.default_rng(7)
    with preprocess("f32", (1, 3, 4, 4), colour=colour, resize="stretch") as run:
        for rgb in generator.uniform(0, 255, (60, 3)):
            picture = np.broadcast_to(rgb, (4, 4, 3))
            planes = planes_of(picture, pixel_format, matrix, colour_range)
            header = header_of(
                picture, pixel_format, colour_matrix=matrix, colour_range=colour_range
            )
            out = run.feed({"image": planes}, header)["tensor"].tensors["images"]
            wanted = rgb if colour == "RGB" else rgb[::-1]
            assert np.abs(out[0, :, 0, 0] - wanted).max() <= 2
            assert (out == out[:, :, :1, :1]).all()


@pytest.mark.parametrize("pixel_format", ["i420", "nv12", "bgr24", "rgb24"])
@pytest.mark.parametrize("colour", ["RGB", "BGR"])
@pytest.mark.parametrize(("dtype", "layout"), [("f32", "NCHW"), ("u8", "NHWC"), ("u8", "NCHW")])
def test_pure_red_lands_in_the_red_channel(preprocess, pixel_format, colour, dtype, layout) -> None:
    red = np.broadcast_to((255.0, 0.0, 0.0), (32, 48, 3))
    shape = (1, 3, 20, 20) if layout == "NCHW" else (1, 20, 20, 3)
    with preprocess(dtype, shape, colour=colour, resize="stretch") as run:
        planes = planes_of(red, pixel_format)
        out = run.feed({"image": planes}, header_of(red, pixel_format))["tensor"].tensors["images"]
        channels = out[0, :, 10, 10] if layout == "NCHW" else out[0, 10, 10]
    at = 0 if colour == "RGB" else 2
    assert channels[at] >= 253
    assert np.delete(channels, at).max() <= 2


@pytest.mark.parametrize("pixel_format", ["i420", "nv12", "gray8", "bgr24", "rgb24"])
@pytest.mark.parametrize("dtype", ["u8", "f32"])
def test_a_grey_model_sees_grey(preprocess, pixel_format, dtype) -> None:
    grey = np.full((30, 40, 3), 200.0)
    planes = planes_of(
        grey, pixel_format, colour_range="full" if pixel_format == "gray8" else "limited"
    )
    with preprocess(dtype, (1, 1, 15, 20), colour="GRAY") as run:
        out = run.feed({"image": planes}, header_of(grey, pixel_format))["tensor"]
        assert np.abs(out.tensors["images"].astype(float) - 200).max() <= 1


def test_a_grey_picture_fills_all_channels(preprocess) -> None:
    picture = np.full((30, 40, 3), 90.0)
    planes = planes_of(picture, "gray8", colour_range="full")
    with preprocess("f32", (1, 3, 15, 20)) as run:
        out = run.feed({"image": planes}, header_of(picture, "gray8"))["tensor"]
        assert (out.tensors["images"] == 90).all()


def test_the_format_may_change_from_frame_to_frame(preprocess) -> None:
    rgb = smooth_rgb(64, 48)
    with preprocess("f32", (1, 3, 48, 64)) as run:
        for pixel_format in ("i420", "bgr24", "nv12", "rgb24", "i420"):
            planes = planes_of(rgb, pixel_format)
            out = run.feed({"image": planes}, header_of(rgb, pixel_format))["tensor"]
            assert np.abs(out.tensors["images"][0].transpose(1, 2, 0) - rgb).mean() < 3


@pytest.mark.parametrize("layout", ["NCHW", "NHWC"])
@pytest.mark.parametrize(
    ("dtype", "options"),
    [
        ("f32", {"scale": 1 / 255, "mean": (0.5, 0.4, 0.3), "std": (0.2, 0.3, 0.4)}),
        ("f16", {"scale": 1 / 255}),
        ("i8", {"mean": (128,)}),
        ("u8", {"scale": 0.5}),
    ],
)
def test_scale_mean_and_std(preprocess, layout, dtype, options) -> None:
    rgb = smooth_rgb(40, 20)
    shape = (1, 3, 40, 40) if layout == "NCHW" else (1, 40, 40, 3)
    with preprocess(dtype, shape, **options) as run:
        out = run.feed({"image": planes_of(rgb, "rgb24")}, header_of(rgb, "rgb24"))["tensor"]
        found = out.tensors["images"][0].astype(np.float64)
    found = found.transpose(1, 2, 0) if layout == "NCHW" else found
    levels = reference(bytes_of(rgb), "letterbox-centre", (40, 40), 114)
    expected = (levels * options.get("scale", 1) - options.get("mean", 0)) / options.get("std", 1)
    assert np.abs(found - expected).max() <= (0.5 if dtype in {"u8", "i8"} else 1e-3)


def test_the_border_follows_the_geometry(preprocess) -> None:
    wide, tall = smooth_rgb(64, 32), smooth_rgb(32, 64)
    with preprocess("f32", (1, 3, 64, 64), pad=7) as run:
        for rgb in (wide, wide, tall, wide, tall, tall):
            out = run.feed({"image": planes_of(rgb, "bgr24")}, header_of(rgb, "bgr24"))["tensor"]
            found = out.tensors["images"][0].transpose(1, 2, 0)
            assert np.abs(found - reference(rgb, "letterbox-centre", (64, 64), 7)).max() < 1


def test_the_border_is_written_once_for_a_slot(preprocess) -> None:
    rgb = smooth_rgb(64, 32)
    with preprocess("f32", (1, 3, 64, 64), pad=7) as run:
        run.feed({"image": planes_of(rgb, "i420")}, header_of(rgb))
        run.outputs["tensor"].loan.tensor("images")[0, 0, 0, 0] = 99  # only a test may do so
        out = run.feed({"image": planes_of(rgb, "i420")}, header_of(rgb))["tensor"]
        assert out.tensors["images"][0, 0, 0, 0] == 99


def test_the_transform_reaches_through_a_source_that_scaled(preprocess) -> None:
    rgb = smooth_rgb(64, 32)
    header = header_of(rgb)._replace(
        width=128, height=64, transform=(2.0, 0.0, 0.0, 0.0, 2.0, 0.0), pts_ns=5
    )
    with preprocess("f32", (1, 3, 64, 64)) as run:
        found = run.feed({"image": planes_of(rgb, "i420")}, header)["tensor"].header
    assert map_point(found.transform, 0, 16) == (0, 0)
    assert map_point(found.transform, 64, 48) == (128, 64)
    assert (found.input_width, found.input_height) == (64, 64)
    assert found._replace(transform=header.transform, input_width=0, input_height=0) == header


def test_area_shrinks_smoothly(preprocess) -> None:
    noise = np.random.default_rng(1).integers(0, 256, (400, 400, 3)).astype(float)
    spread = {}
    for interpolation in ("linear", "area"):
        with preprocess("f32", (1, 3, 50, 50), interpolation=interpolation) as run:
            out = run.feed({"image": planes_of(noise, "rgb24")}, header_of(noise, "rgb24"))[
                "tensor"
            ]
            spread[interpolation] = float(out.tensors["images"].std())
    assert spread["area"] < spread["linear"] / 2


@pytest.mark.parametrize(
    ("planes", "expected"),
    [
        ({"y": np.zeros((0, 4), np.uint8)}, "4x0 has no pixels"),
        ({"bgr": np.zeros((4, 4, 3), np.uint8)}, "said to be gray8 has no plane 'y'"),
    ],
)
def test_a_frame_without_a_picture_is_lost(preprocess, planes, expected) -> None:
    with preprocess("f32", (1, 3, 64, 64)) as run, pytest.raises(FrameLostError, match=expected):
        run.feed({"image": planes}, FrameHeader(width=4, height=4, pixel_format="gray8"))


def traced_peak(run, frames: int) -> int:
    """Bytes by which the work on frames whose planes are already there raises the peak."""
    samples = {"image": run.inputs["image"].sample}
    loans = {"tensor": run.outputs["tensor"].loan}
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    for _ in range(frames):
        run.stage.process(samples, loans)
    peak = tracemalloc.get_traced_memory()[1] - before
    tracemalloc.stop()
    return peak


@pytest.mark.parametrize("pixel_format", ["i420", "nv12", "bgr24"])
@pytest.mark.parametrize("matrix", ["bt601", "bt709"])
@pytest.mark.parametrize(
    ("dtype", "shape"),
    [("f32", (1, 3, 416, 416)), ("u8", (1, 300, 300, 3)), ("f16", (1, 3, 320, 320))],
)
def test_a_frame_allocates_nothing_of_its_size(
    preprocess, pixel_format, matrix, dtype, shape
) -> None:
    rgb = smooth_rgb(767, 575)
    header = header_of(rgb, pixel_format, colour_matrix=matrix)
    with preprocess(dtype, shape, scale=0.5) as run:
        run.feed({"image": planes_of(rgb, pixel_format)}, header)
        assert traced_peak(run, 5) < 16_384


def test_many_sizes_cost_no_memory(preprocess) -> None:
    """Frames of 300 sizes use the buffers that the largest needed (V10)."""
    generator = np.random.default_rng(3)
    with preprocess("f32", (1, 3, 128, 128)) as run:
        for size in ((400, 400), (400, 399), (399, 400)):
            rgb = smooth_rgb(*size)
            run.feed({"image": planes_of(rgb, "i420")}, header_of(rgb))
        tracemalloc.start()
        before = tracemalloc.get_traced_memory()[0]
        for width, height in generator.integers(1, 400, (300, 2)):
            y = np.zeros((height, width), np.uint8)
            chroma = np.zeros(((height + 1) // 2, (width + 1) // 2), np.uint8)
            header = FrameHeader(width=int(width), height=int(height))
            run.feed({"image": {"y": y, "u": chroma, "v": chroma}}, header)
        del y, chroma
        grown = tracemalloc.get_traced_memory()[0] - before
        tracemalloc.stop()
    assert grown < 500_000  # a picture for each size would be ten million

import logging
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image, ImageOps, TiffImagePlugin

from edgert.errors import FrameLostError, MediaError
from edgert.stages.harness import StageRun, opened
from edgert.stages.source.images import ImagesSource
from edgert.tensor import FrameHeader
from edgert.transport.address import Array

from .media import plan_context

GRADIENT = np.dstack(
    [
        np.tile(np.arange(100, dtype=np.uint8), (40, 1)),
        np.tile(np.arange(40, dtype=np.uint8)[:, None] * 3, (1, 100)),
        np.full((40, 100), 200, np.uint8),
    ]
)  # RGB


def playing(path: Path, **settings: Any) -> Any:
    return opened(ImagesSource, {"uri": str(path), **settings}, {}, plan_context(path.parent))


def one(path: Path, **settings: Any) -> tuple[Array, FrameHeader]:
    with playing(path, **settings) as run:
        out = run.grab()
        assert out is not None
        pixels, header = out["image"].tensors["bgr"].copy(), out["image"].header
        del out
        assert run.grab() is None
    return pixels, header


def drain(run: StageRun) -> list[str]:
    """``whole``, ``partial``, or the reason of the loss of each image."""
    found = []
    while True:
        try:
            out = run.grab()
        except FrameLostError as error:
            found.append(str(error))
            continue
        if out is None:
            return found
        found.append("partial" if out["image"].header.is_partial else "whole")


# Kinds of pictures


@pytest.mark.parametrize("name", ["a.png", "a.bmp", "a.tif", "a.webp"])
def test_colours_arrive_as_bgr(tmp_path: Path, name: str) -> None:
    lossless = {"lossless": True} if name == "a.webp" else {}
    Image.fromarray(GRADIENT).save(tmp_path / name, **lossless)
    pixels, header = one(tmp_path / name)
    np.testing.assert_array_equal(pixels, GRADIENT[..., ::-1])
    assert (header.width, header.height, header.pixel_format) == (100, 40, "bgr24")


@pytest.mark.parametrize("mode", ["1", "L", "LA", "P", "RGBA", "CMYK", "YCbCr"])
def test_other_modes_look_the_same(tmp_path: Path, mode: str) -> None:
    image = Image.fromarray(GRADIENT).convert(mode)
    path = tmp_path / ("a.jpg" if mode in ("CMYK", "YCbCr") else "a.png")
    image.save(path, quality=100)
    expected = np.asarray(image.convert("RGB"))[..., ::-1].astype(int)
    np.testing.assert_allclose(one(path)[0], expected, atol=6)


def test_alpha_is_dropped_not_blended(tmp_path: Path) -> None:
    transparent = np.dstack([GRADIENT, np.zeros((40, 100), np.uint8)])
    Image.fromarray(transparent, "RGBA").save(tmp_path / "a.png")
    np.testing.assert_array_equal(one(tmp_path / "a.png")[0], GRADIENT[..., ::-1])


@pytest.mark.parametrize("name", ["a.png", "a.tif"])
def test_sixteen_bits_become_eight(tmp_path: Path, name: str) -> None:
    deep = (np.arange(256, dtype=np.uint16) * 257).reshape(16, 16)
    Image.fromarray(deep).save(tmp_path / name)
    pixels, _ = one(tmp_path / name)
    np.testing.assert_array_equal(pixels[..., 0], np.arange(256).reshape(16, 16))


def test_sixteen_bits_of_colour_become_eight(tmp_path: Path) -> None:
    import cv2

    cv2.imwrite(str(tmp_path / "a.png"), GRADIENT.astype(np.uint16) * 257)  # as BGR
    np.testing.assert_array_equal(one(tmp_path / "a.png")[0], GRADIENT)


def test_floats_are_0_to_1(tmp_path: Path) -> None:
    Image.fromarray(np.linspace(0, 1, 256, dtype=np.float32).reshape(16, 16)).save(
        tmp_path / "a.tif"
    )
    pixels, _ = one(tmp_path / "a.tif")
    np.testing.assert_allclose(pixels[..., 1].ravel(), np.arange(256), atol=1)


def test_floats_beyond_are_lost_with_the_reason(tmp_path: Path) -> None:
    Image.fromarray(np.full((4, 4), 1000, np.float32)).save(tmp_path / "a.tif")
    with playing(tmp_path / "a.tif") as run:
        assert "floats from 1000 to 1000" in drain(run)[0]


# Orientation


@pytest.mark.parametrize("orientation", range(1, 9))
@pytest.mark.parametrize("name", ["a.png", "a.tif"])
def test_exif_orientation_is_applied_to_pixels_size_and_plan(
    tmp_path: Path, orientation: int, name: str
) -> None:
    image = Image.fromarray(GRADIENT)
    exif = Image.Exif()
    exif[0x0112] = orientation
    image.save(tmp_path / name, exif=exif)
    upright = ImageOps.exif_transpose(Image.open(tmp_path / name))
    assert upright is not None
    with playing(tmp_path / name) as run:
        port = run.stage.context.outputs["image"]
        assert port.tensors["bgr"].shape == (upright.height, upright.width, 3)
    pixels, header = one(tmp_path / name)
    np.testing.assert_array_equal(pixels, np.asarray(upright)[..., ::-1])
    assert (header.width, header.height) == upright.size
    assert header.width == (40 if orientation >= 5 else 100)


# Damage


@pytest.fixture
def jpeg(tmp_path: Path) -> bytes:
    noise = np.random.default_rng(1).integers(0, 256, (200, 200, 3), np.uint8)
    Image.fromarray(noise).save(tmp_path / "whole.jpg", quality=90)
    return (tmp_path / "whole.jpg").read_bytes()


@pytest.mark.parametrize("part", [0.1, 0.5, 0.9])
def test_a_truncated_jpeg_is_lost_passed_or_a_fault(
    tmp_path: Path, jpeg: bytes, part: float
) -> None:
    (tmp_path / "z.jpg").write_bytes(jpeg[: int(len(jpeg) * part)])
    with playing(tmp_path) as run:
        whole, reason = drain(run)
        assert whole == "whole"
        assert "'z.jpg' is damaged: image file is truncated" in reason
    with playing(tmp_path, on_corrupt="pass") as run:
        assert drain(run) == ["whole", "partial"]
    with playing(tmp_path, on_corrupt="fail") as run, pytest.raises(MediaError, match="truncated"):
        drain(run)


def test_bytes_after_the_end_are_fine(tmp_path: Path, jpeg: bytes) -> None:
    (tmp_path / "whole.jpg").write_bytes(jpeg + bytes(1024))
    assert not one(tmp_path / "whole.jpg")[1].is_partial


def test_a_truncated_png_is_partial_too(tmp_path: Path) -> None:
    noise = np.random.default_rng(1).integers(0, 256, (200, 200, 3), np.uint8)
    Image.fromarray(noise).save(tmp_path / "a.png")
    data = (tmp_path / "a.png").read_bytes()
    (tmp_path / "a.png").write_bytes(data[: len(data) // 2])
    with playing(tmp_path, on_corrupt="pass") as run:
        assert drain(run) == ["partial"]


def test_files_that_are_no_images_are_lost_with_a_reason(tmp_path: Path) -> None:
    Image.fromarray(GRADIENT).save(tmp_path / "1.png")
    (tmp_path / "2.jpg").write_bytes((tmp_path / "1.png").read_bytes())
    (tmp_path / "3.jpg").touch()
    (tmp_path / "4.png").write_text("hello\n" * 100)
    (tmp_path / "5.png").symlink_to(tmp_path / "gone.png")
    (tmp_path / "6.png").write_bytes((tmp_path / "1.png").read_bytes())
    with playing(tmp_path) as run:
        (tmp_path / "6.png").unlink()
        found = drain(run)
    assert found == [
        "whole",
        "whole",
        "'3.jpg' is empty",
        "'4.png' is not an image (JPEG, PNG, BMP, TIFF, WEBP)",
        "'6.png' cannot be read: no such file or directory",
    ]


def test_a_decompression_bomb_is_refused_before_it_is_decoded(tmp_path: Path) -> None:
    Image.fromarray(GRADIENT).save(tmp_path / "1.png")
    for name, side in (("2.png", 10_000), ("3.png", 60_000)):
        header = bytearray((tmp_path / "1.png").read_bytes())
        header[16:24] = side.to_bytes(4, "big") * 2
        crc = __import__("zlib").crc32(header[12:29])
        header[29:33] = crc.to_bytes(4, "big")
        (tmp_path / name).write_bytes(header)
    with playing(tmp_path) as run:
        assert run.stage.context.outputs["image"].tensors["bgr"].shape == (40, 100, 3)
        whole, *reasons = drain(run)
    assert whole == "whole"
    assert all("pixels: refused" in reason for reason in reasons)


def test_integers_of_32_bits_have_no_scale(tmp_path: Path) -> None:
    Image.fromarray(np.full((4, 4), 70_000, np.int32)).save(tmp_path / "a.tif")
    with playing(tmp_path) as run:
        assert "integers of 32 bits" in drain(run)[0]


# The stream


def test_sizes_differ_and_the_slot_has_room_for_each(tmp_path: Path) -> None:
    Image.new("RGB", (10, 30)).save(tmp_path / "1.png")
    Image.new("RGB", (40, 20)).save(tmp_path / "2.png")
    with playing(tmp_path) as run:
        assert run.stage.context.outputs["image"].tensors["bgr"].shape == (30, 40, 3)
        assert drain(run) == ["whole"] * 2


def test_images_come_at_one_a_second(tmp_path: Path) -> None:
    for name in ("1.png", "2.png"):
        Image.new("RGB", (4, 4)).save(tmp_path / name)
    with playing(tmp_path, loop=2) as run:
        times = []
        while (out := run.grab()) is not None:
            times.append(out["image"].header.pts_ns)
    assert times == [0, 10**9, 2 * 10**9, 3 * 10**9]


def test_an_image_that_grew_since_the_plan_is_scaled_and_leads_back(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    Image.new("RGB", (50, 50)).save(tmp_path / "1.png")
    caplog.set_level(logging.WARNING)
    with playing(tmp_path) as run:
        Image.fromarray(GRADIENT).save(tmp_path / "1.png")
        out = run.grab()
        assert out is not None
        header = out["image"].header
        assert out["image"].tensors["bgr"].shape == (20, 50, 3)
        assert (header.width, header.height) == (100, 40)
        assert header.transform == (2.0, 0.0, 0.0, 0.0, 2.0, 0.0)
        assert out["image"].tensors["bgr"][0, 0, 0] == 200
        del out
    assert "1 image larger than the slot" in caplog.text


def test_no_image_among_the_files_is_found_while_planning(tmp_path: Path) -> None:
    (tmp_path / "1.png").write_text("hello")
    with (
        pytest.raises(MediaError, match=r"none of 1 files is an image: '1.png' is not an image"),
        playing(tmp_path),
    ):
        pass


def test_damaged_exif_does_not_cost_the_picture(tmp_path: Path) -> None:
    Image.fromarray(GRADIENT).save(tmp_path / "a.jpg", exif=b"Exif\x00\x00II*\x00\xff\xff\xff\xff")
    assert one(tmp_path / "a.jpg")[1].width == 100


def test_tiff_is_read_from_the_plugin_that_turns_it(tmp_path: Path) -> None:
    """``loader`` relies on Pillow's turning TIFF by itself."""
    exif = Image.Exif()
    exif[0x0112] = 6
    Image.fromarray(GRADIENT).save(tmp_path / "a.tif", exif=exif)
    with Image.open(tmp_path / "a.tif") as image:
        assert isinstance(image, TiffImagePlugin.TiffImageFile)
        assert image.size == (40, 100)


def test_a_sample_is_played_by_its_name(pulled: Any) -> None:
    file = pulled("sample:astronaut")
    with opened(ImagesSource, {"uri": "sample:astronaut"}, {}, plan_context(Path())) as run:
        out = run.grab()
        assert out is not None
        expected = np.asarray(Image.open(file))[..., ::-1]
        assert np.array_equal(out["image"].tensors["bgr"], expected)
        del out
        assert run.grab() is None


def test_an_unknown_sample_is_named() -> None:
    with (
        pytest.raises(MediaError, match="Did you mean 'sample:astronaut'"),
        opened(ImagesSource, {"uri": "sample:astronout"}, {}, plan_context(Path())),
    ):
        pass

"""Reads image files, whatever is wrong with them. Imports Pillow: for children and workers."""

from __future__ import annotations

import struct
import time
import warnings
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image, ImageFile, UnidentifiedImageError

from edgert.errors import FrameLostError, MediaError
from edgert.stages.source.normalise import normalise
from edgert.transport.address import Array

FORMATS = ("JPEG", "PNG", "BMP", "TIFF", "WEBP")
ORIENTATION = 0x0112  # the EXIF tag
SIXTEEN_BITS = frozenset(("I;16", "I;16L", "I;16B", "I;16N"))
# What Pillow raises at files that are damaged or hostile.
FAULTS = (
    OSError,
    SyntaxError,
    ValueError,
    TypeError,
    LookupError,
    OverflowError,
    EOFError,
    struct.error,
    zlib.error,
    Image.DecompressionBombError,
    Image.DecompressionBombWarning,
)


@dataclass(frozen=True, slots=True)
class Loaded:
    """A picture in memory.

    Attributes:
        pixels: u8 [H, W, 3] in BGR, upright; a view in any order of strides.
        is_partial: Whether the file ended before the picture did.
        copied_bytes: Bytes moved besides decoding.
    """

    pixels: Array
    is_partial: bool
    copied_bytes: int


def load_image(path: Path, *, allow_partial: bool) -> Loaded:
    """Read one image, apply its EXIF orientation and make it BGR of 8 bits.

    Args:
        path: The file; what it is is told by its contents, not by its name.
        allow_partial: Whether a truncated image is given as far as it goes.

    Raises:
        FrameLostError: It cannot be had; the message says why.
    """
    try:
        return _load(path)
    except FAULTS as error:
        if not (allow_partial and _is_truncation(error)):
            raise FrameLostError(f"'{path.name}' {_reason(path, error)}") from error
    with _truncated_allowed():
        try:
            whole = _load(path)
        except FAULTS as error:
            raise FrameLostError(f"'{path.name}' {_reason(path, error)}") from error
    return Loaded(whole.pixels, True, whole.copied_bytes)  # noqa: FBT003


def probe_images(paths: list[str], place: str, budget_s: float) -> dict[str, int]:
    """Return the largest upright width and height of images, by their headers.

    Files that the time does not suffice for are left out, and so are those that are no images: the
    first are scaled down where they are larger, the others are told when their turn comes.

    Raises:
        MediaError: None of them is an image.
    """
    ends_s = time.monotonic() + budget_s
    width = height = seen = 0
    reason = ""
    for path in map(Path, paths):
        if time.monotonic() > ends_s:
            break
        try:
            size = _upright_size(path)
        except FAULTS as error:
            reason = reason or f"'{path.name}' {_reason(path, error)}"
            continue
        seen += 1
        width, height = max(width, size[0]), max(height, size[1])
    if not seen:
        raise MediaError(place, f"none of {len(paths)} files is an image: {reason}", "check `uri`")
    return {"width": width, "height": height}


@contextmanager
def _opened(path: Path) -> Iterator[Image.Image]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # damaged EXIF and the like: the picture is what counts
        warnings.simplefilter("error", Image.DecompressionBombWarning)
        with Image.open(path, formats=FORMATS) as image:
            yield image


def _upright_size(path: Path) -> tuple[int, int]:
    with _opened(path) as image:
        width, height = image.size
        # Pillow turns TIFF by itself, and says so in the size.
        is_turned = image.format != "TIFF" and _orientation(image) >= 5
        return (height, width) if is_turned else (width, height)


def _load(path: Path) -> Loaded:
    with _opened(path) as image:
        image.load()
        array = _array_of(image)
        pixels = _oriented(_normalised(array), _orientation(image))
        return Loaded(pixels, False, array.nbytes)  # noqa: FBT003


def _normalised(array: Array) -> Array:
    try:
        return normalise(array)
    except MediaError as error:
        raise ValueError(error.faults[0].fault) from error


def _array_of(image: Image.Image) -> Array:
    """Return the pixels in a form that ``normalise`` knows, colours in BGR."""
    mode = image.mode
    if mode in SIXTEEN_BITS:
        return np.asarray(image).astype(np.uint16)
    if mode == "I":
        return _sixteen_of_thirty_two(np.asarray(image))
    if mode == "F":
        return np.asarray(image)
    if mode in ("1", "L", "LA", "La"):
        return np.asarray(image.convert("L"))
    if mode == "P":
        image = image.convert("RGBA")  # a palette may have alpha
    if image.mode != "RGB":
        image = image.convert("RGB")
    flat = np.frombuffer(image.tobytes("raw", "BGR"), np.uint8)
    return flat.reshape(image.height, image.width, 3)


def _sixteen_of_thirty_two(array: Array) -> Array:
    """Pillow gives some images of 16 bits as 32."""
    if int(array.min()) < 0 or int(array.max()) > 0xFFFF:
        raise ValueError("has integers of 32 bits, which have no scale")
    return array.astype(np.uint16)


def _orientation(image: Image.Image) -> int:
    try:
        found: Any = image.getexif().get(ORIENTATION, 1)
    except FAULTS:
        return 1
    return found if isinstance(found, int) and 1 <= found <= 8 else 1


def _oriented(pixels: Array, orientation: int) -> Array:
    """Return a view of the picture as it is meant to be seen."""
    if orientation >= 5:
        pixels = pixels.transpose(1, 0, 2)
    flip_rows = orientation in (3, 4, 7, 8)
    flip_columns = orientation in (2, 3, 6, 7)
    return pixels[:: -1 if flip_rows else 1, :: -1 if flip_columns else 1]


@contextmanager
def _truncated_allowed() -> Iterator[None]:
    ImageFile.LOAD_TRUNCATED_IMAGES = True
    try:
        yield
    finally:
        ImageFile.LOAD_TRUNCATED_IMAGES = False


def _is_truncation(error: BaseException) -> bool:
    return isinstance(error, OSError | SyntaxError | EOFError) and not isinstance(
        error, UnidentifiedImageError | FileNotFoundError | PermissionError
    )


def _reason(path: Path, error: BaseException) -> str:
    if isinstance(error, Image.DecompressionBombError | Image.DecompressionBombWarning):
        return f"is larger than {Image.MAX_IMAGE_PIXELS} pixels: refused"
    if isinstance(error, UnidentifiedImageError):
        is_empty = path.is_file() and not path.stat().st_size
        return "is empty" if is_empty else f"is not an image ({', '.join(FORMATS)})"
    if isinstance(error, OSError) and error.strerror:
        return f"cannot be read: {error.strerror.lower()}"
    return f"is damaged: {error}"

"""Where a picture lands in a model's input, and the way back."""

from __future__ import annotations

from functools import lru_cache
from math import prod
from typing import Literal, NamedTuple, get_args

from edgert.stages.geometry import Affine, Size

Resize = Literal["letterbox-centre", "letterbox-top-left", "fit-height", "stretch"]
RESIZES: tuple[str, ...] = get_args(Resize)
_SLACK = 0.1  # of the input: more detail, or fewer pixels to compute, are worth so much border


class Placement(NamedTuple):
    """The rectangle of the model's input that shows the picture; the rest is border.

    Attributes:
        left: First column of the picture.
        top: First row of the picture.
        width: Columns of the picture, at least 1.
        height: Rows of the picture, at least 1.
        target: Width and height of the whole input.
        to_source: From pixels of the model's input to pixels of the picture.
    """

    left: int
    top: int
    width: int
    height: int
    target: Size
    to_source: Affine


@lru_cache(maxsize=64)
def place(resize: str, source: Size, target: Size, *, scale_up: bool = True) -> Placement:
    """Fit a picture into a model's input.

    A letterbox keeps the aspect as nearly as whole pixels allow: the scaled size is rounded to the
    nearest pixel, and the way back uses the scale that really came of it, on each axis its own.
    ``fit-height`` fills the height and keeps the aspect, but for a picture too wide for the input,
    which is squeezed: as readers of lines of text want it.

    Args:
        resize: One of ``RESIZES``. ``letterbox-centre`` puts an odd border's extra pixel right and
            below.
        source: Width and height of the picture.
        target: Width and height of the model's input.
        scale_up: Whether a letterbox enlarges a picture smaller than the input.
    """
    width, height = target
    if resize == "fit-height":
        width = min(width, max(1, round(source[0] * height / source[1])))
    elif resize != "stretch":
        ratio = min(width / source[0], height / source[1])
        if not scale_up:
            ratio = min(ratio, 1.0)
        width = max(1, round(source[0] * ratio))
        height = max(1, round(source[1] * ratio))
    is_centred = resize == "letterbox-centre"
    left = (target[0] - width) // 2 if is_centred else 0
    top = (target[1] - height) // 2 if is_centred else 0
    back_x, back_y = source[0] / width, source[1] / height
    to_source = (back_x, 0.0, -left * back_x, 0.0, back_y, -top * back_y)
    return Placement(left, top, width, height, target, to_source)


@lru_cache(maxsize=64)
def choose(picture: Size, sizes: tuple[Size, ...], resize: str) -> Size:
    """Return the size of input in which a picture is best seen.

    First the aspect: only sizes stay whose waste (the share that is border, or with ``stretch`` the
    share by which one side is scaled more than the other) is within ``_SLACK`` of the least. Of
    these the smallest one in which the picture is not shrunk; where it is in all of them, the one
    that shows it largest.

    Args:
        picture: Width and height of the picture.
        sizes: Width and height of each input that there is, at least one.
        resize: One of ``RESIZES``.
    """
    wasted = {size: _waste(picture, size, resize) for size in sizes}
    least = min(wasted.values())
    fitting = [size for size in sizes if wasted[size] <= least + _SLACK]
    whole = [size for size in fitting if size[0] >= picture[0] and size[1] >= picture[1]]
    if whole:
        return min(whole, key=prod)
    return max(fitting, key=lambda size: (prod(size) * _used(picture, size), -prod(size)))


def _used(picture: Size, size: Size) -> float:
    """Return the share of an input that shows the picture, when its aspect is kept."""
    wider = _wider(picture, size)
    return min(wider, 1 / wider)


def _waste(picture: Size, size: Size, resize: str) -> float:
    # A line of text that has to be squeezed is worse than any border.
    is_squeezed = resize == "fit-height" and _wider(picture, size) > 1
    return 1 - _used(picture, size) + is_squeezed


def _wider(picture: Size, size: Size) -> float:
    return (picture[0] * size[1]) / (picture[1] * size[0])

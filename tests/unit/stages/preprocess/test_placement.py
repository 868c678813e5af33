"""Where a picture lands in a model's input (N1)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgert.stages.geometry import map_point
from edgert.stages.preprocess.geometry import RESIZES, place

sizes = st.tuples(st.integers(1, 4095), st.integers(1, 4095))
targets = st.tuples(st.integers(1, 1280), st.integers(1, 1280))


@pytest.mark.parametrize(
    ("source", "centre", "top_left"),
    [
        ((1920, 1080), (0, 91, 416, 234), (0, 0, 416, 234)),
        ((1080, 1920), (91, 0, 234, 416), (0, 0, 234, 416)),
        ((333, 517), (74, 0, 268, 416), (0, 0, 268, 416)),
        ((100, 50), (0, 104, 416, 208), (0, 0, 416, 208)),
        ((512, 512), (0, 0, 416, 416), (0, 0, 416, 416)),
        ((640, 271), (0, 120, 416, 176), (0, 0, 416, 176)),
        ((4095, 1), (0, 207, 416, 1), (0, 0, 416, 1)),
    ],
)
def test_each_kind_of_letterbox(source, centre, top_left) -> None:
    target = (416, 416)
    assert place("letterbox-centre", source, target)[:4] == centre
    assert place("letterbox-top-left", source, target)[:4] == top_left
    assert place("stretch", source, target)[:4] == (0, 0, 416, 416)


def test_small_pictures_stay_small_where_scaling_up_is_off() -> None:
    placed = place("letterbox-centre", (100, 50), (416, 416), scale_up=False)
    assert placed == (158, 183, 100, 50, (416, 416), (1.0, 0.0, -158.0, 0.0, 1.0, -183.0))


@pytest.mark.parametrize(
    ("source", "width"), [((100, 24), 200), ((20, 48), 20), ((1000, 24), 320), ((1, 4000), 1)]
)
def test_a_line_fills_the_height_and_is_squeezed_where_it_is_too_wide(source, width) -> None:
    assert place("fit-height", source, (320, 48))[:4] == (0, 0, width, 48)


@given(st.sampled_from(RESIZES), sizes, targets, st.booleans())
def test_the_way_back_is_exact(resize, source, target, scale_up) -> None:
    placed = place(resize, source, target, scale_up=scale_up)
    right, bottom = placed.left + placed.width, placed.top + placed.height
    assert 0 <= placed.left < right <= target[0]
    assert 0 <= placed.top < bottom <= target[1]
    corners = [
        ((placed.left, placed.top), (0, 0)),
        ((right, bottom), source),
        (
            (placed.left + placed.width / 2, placed.top + placed.height / 3),
            (source[0] / 2, source[1] / 3),
        ),
    ]
    for there, back in corners:
        assert map_point(placed.to_source, *there) == pytest.approx(back, abs=1e-6)


@given(sizes, targets)
def test_a_letterbox_keeps_the_aspect_within_a_pixel(source, target) -> None:
    placed = place("letterbox-centre", source, target)
    ratio = min(target[0] / source[0], target[1] / source[1])
    assert abs(placed.width - source[0] * ratio) <= 1
    assert abs(placed.height - source[1] * ratio) <= 1
    assert placed.width == target[0] or placed.height == target[1]

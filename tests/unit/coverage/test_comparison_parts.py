"""The parts of a comparison that need no device: figures, groups, shrinking, boxes, files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from xml.etree import ElementTree as ET

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgert.coverage.comparison import chart
from edgert.coverage.comparison.bisect import boundary
from edgert.coverage.comparison.boxes import summary
from edgert.coverage.comparison.figures import measure, worst_of
from edgert.coverage.comparison.inputs import read_arrays
from edgert.coverage.comparison.keep import write_arrays
from edgert.coverage.comparison.layers import GROUP_BYTES, first_of, groups_of
from edgert.coverage.comparison.record import Figures, Layer, Layers
from edgert.coverage.comparison.shrink import shrink
from edgert.coverage.graph import Graph, GraphNode
from edgert.errors import MediaError
from edgert.results.likeness import Found

X = np.array([3.0, 4.0], np.float32)


def test_figures_are_what_their_names_say() -> None:
    found = measure("y", X, {"y": X + np.array([0.5, 0.0], np.float32)}, 0, 0)
    assert (found.numerics, found.max_error, found.mean_error) == ("differs", 0.5, 0.25)
    assert found.snr_db == pytest.approx(20.0)  # 25 to 0.25
    assert found.cosine == pytest.approx(26.5 / (5 * np.hypot(3.5, 4)))


def test_equal_tensors_have_no_noise() -> None:
    found = measure("y", X, {"y": X.copy()}, 0, 0)
    assert (found.numerics, found.cosine, found.max_error, found.snr_db) == ("equal", 1.0, 0, None)


@pytest.mark.parametrize(
    ("actual", "reason"),
    [
        ({}, "output 'y' is missing"),
        ({"y": X[:1]}, "output 'y' is [1], not [2]"),
        ({"y": np.full(2, np.nan, np.float32)}, "2 of 2 values of 'y' differ"),
    ],
)
def test_what_cannot_be_measured_differs_with_a_reason(
    actual: dict[str, np.ndarray], reason: str
) -> None:
    found = measure("y", X, actual, 0, 0)
    assert (found.numerics, found.reason, found.snr_db) == ("differs", reason, None)


def test_whole_numbers_may_be_off_by_steps_only_where_that_is_asked_for() -> None:
    levels = np.array([0, 255, 7], np.uint8)
    off = {"y": np.array([1, 254, 7], np.uint8)}
    assert measure("y", levels, off, 1e-2, 1e-3).numerics == "differs"
    assert measure("y", levels, off, 1e-2, 1.0).numerics == "equal"
    off = {"y": np.array([0, 253, 7], np.uint8)}
    assert measure("y", levels, off, 1e-2, 1.0).numerics == "differs"


def test_of_several_samples_the_worst_of_each_figure_counts() -> None:
    good = Figures(
        tensor="y", numerics="equal", cosine=1.0, max_error=0.1, mean_error=0.1, snr_db=90
    )
    bad = Figures(tensor="y", numerics="differs", cosine=0.5, max_error=2, mean_error=0.3, snr_db=9)
    assert worst_of([bad, good]) == Figures(
        tensor="y", numerics="differs", cosine=0.5, max_error=2, mean_error=0.2, snr_db=9
    )


@given(st.lists(st.integers(0, 2 * GROUP_BYTES), max_size=20))
def test_groups_are_bounded_and_lose_nothing(sizes: list[int]) -> None:
    known = {f"t{number}": size for number, size in enumerate(sizes)}
    groups = list(groups_of(list(known), known))
    assert [name for group in groups for name in group] == list(known)
    for group in groups:
        assert len(group) == 1 or sum(known[name] for name in group) <= GROUP_BYTES


def diamond() -> Graph:
    """Return a -> (b, c) -> d."""
    parts = {"a": ("x",), "b": ("ta",), "c": ("ta",), "d": ("tb", "tc")}
    nodes = [
        GraphNode(name=name, operator=name.upper(), inputs=inputs, outputs=(f"t{name}",))
        for name, inputs in parts.items()
    ]
    return Graph(nodes=nodes, sizes={})


def test_the_first_layer_is_the_one_that_was_fed_right() -> None:
    found = {
        f"t{name}": Figures(tensor=f"t{name}", numerics="differs" if name in "cd" else "equal")
        for name in "abcd"
    }
    assert first_of(diamond(), found) == "tc"
    assert first_of(diamond(), {}) == ""


@pytest.mark.parametrize(
    ("nodes", "reads", "makes"),
    [
        ("abcd", ["x"], ["td"]),
        ("c", ["ta"], ["tc"]),
        ("ac", ["x"], ["ta", "tc"]),
        ("bcd", ["ta"], ["td"]),
    ],
)
def test_a_cut_reads_and_makes_what_crosses_it(
    nodes: str, reads: list[str], makes: list[str]
) -> None:
    assert boundary(diamond(), list(nodes), ["td"]) == (reads, makes)


@given(st.data())
def test_shrinking_ends_with_exactly_the_nodes_that_are_needed(data: st.DataObject) -> None:
    nodes = [f"n{number}" for number in range(data.draw(st.integers(1, 40)))]
    guilty = data.draw(st.sets(st.sampled_from(nodes), min_size=1, max_size=4))
    asked: list[Sequence[str]] = []

    def shows(part: Sequence[str]) -> bool:
        asked.append(part)
        return guilty <= set(part)

    assert shrink(nodes, shows) == [name for name in nodes if name in guilty]
    assert len(asked) <= len(nodes) + 40


@given(st.integers(1, 30), st.randoms(use_true_random=False))
def test_whatever_shrinking_returns_has_shown_the_fault(count: int, random: object) -> None:
    nodes = [f"n{number}" for number in range(count)]
    known = {tuple(nodes): True}

    def shows(part: Sequence[str]) -> bool:
        return known.setdefault(tuple(part), random.random() < 0.5)  # type: ignore[attr-defined]

    assert known[tuple(shrink(nodes, shows))]


def layer(depth: int, numerics: str, snr_db: float | None) -> Layer:
    figures = Figures(tensor=f"t{depth}", numerics=numerics, snr_db=snr_db, max_error=0.1)
    return Layer(depth=depth, node="<n & o>", operator="Conv", figures=figures)


def test_the_line_of_blocks_climbs_where_the_noise_does() -> None:
    layers = [layer(0, "equal", None), layer(1, "not-run", None), layer(2, "equal", 120.0)]
    layers += [layer(3, "equal", 80.0), layer(4, "differs", 10.0)]
    assert chart.sparkline(layers, 72) == "_.▁▃█  ▁ -120 dB to █ -10 dB"
    assert chart.sparkline(layers, 2)[:2] == "_█"
    assert chart.sparkline([], 72) == "  no noise"


def test_the_drawing_is_well_formed_whatever_the_names() -> None:
    layers = [layer(0, "equal", 120.0), layer(1, "differs", 10.0)]
    found = Layers(sample="s", layers=layers, first="t1", worst=[], outputs="differs", groups=1)
    root = ET.fromstring(chart.svg(found))  # noqa: S314  our own
    assert [each.tag for each in root if each.tag in ("circle", "rect")] == ["circle", "rect"]


def boxes(*rows: tuple[float, float, float, float, float, int]) -> Found:
    table = np.array(rows, np.float64).reshape(-1, 6)
    return Found(table[:, :4], table[:, 4], table[:, 5].astype(np.int32))


def test_boxes_find_their_partner_by_class_and_overlap() -> None:
    expected = boxes((0, 0, 10, 10, 0.9, 1), (20, 20, 30, 30, 0.8, 1), (50, 50, 60, 60, 0.7, 2))
    actual = boxes((0, 0, 10, 5, 0.7, 1), (0, 0, 10, 9, 0.85, 1), (50, 50, 60, 60, 0.7, 3))
    found = summary([(expected, actual)])
    assert (found.reference, found.candidate, found.matched) == (3, 3, 1)
    assert (found.min_iou, found.mean_iou, found.max_score_error) == (0.9, 0.9, 0.05)
    nothing = summary([(boxes(), boxes())])
    assert (nothing.matched, nothing.min_iou) == (0, None)


def test_arrays_come_back_under_any_name_and_of_any_type(tmp_path: Path) -> None:
    small = np.array([1.5, -2.0], ml_dtypes.bfloat16)
    write_arrays(tmp_path / "a.npz", {"file": X, "/a/b:0": X.astype(np.int64), "small": small})
    with np.load(tmp_path / "a.npz") as found:
        assert sorted(found.files) == sorted(["file", "/a/b:0", "small"])
    wanted = {"file": X, "/a/b:0": np.zeros(2, np.int64), "small": np.zeros(2, small.dtype)}
    back = read_arrays(tmp_path / "a.npz", wanted)
    np.testing.assert_array_equal(back["file"], X)
    assert back["small"].dtype == small.dtype
    np.testing.assert_array_equal(back["small"].astype(np.float32), [1.5, -2.0])


@pytest.mark.parametrize(
    ("arrays", "said"),
    [
        ({"z": X}, "the model has no input 'z'. Its inputs: x."),
        ({}, "it has no array 'x'. Give every input of the model."),
        ({"x": X[:1]}, "'x' is float32 [1]. The model takes float32 [2]."),
        ({"x": X.astype(np.float64)}, "'x' is float64 [2]. The model takes float32 [2]."),
    ],
)
def test_arrays_that_do_not_fit_are_refused(
    arrays: dict[str, np.ndarray], said: str, tmp_path: Path
) -> None:
    file = tmp_path / "a.npz"
    write_arrays(file, arrays)
    with pytest.raises(MediaError) as error:
        read_arrays(file, {"x": X})
    assert str(error.value) == f"--inputs {file}: {said}"


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04 not a zip", b"\x93NUMPY"])
def test_a_file_that_is_no_npz_is_refused(content: bytes, tmp_path: Path) -> None:
    file = tmp_path / "a.npz"
    file.write_bytes(content)
    with pytest.raises(MediaError, match="cannot be read"):
        read_arrays(file, {"x": X})

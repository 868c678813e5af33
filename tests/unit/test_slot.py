"""The bytes of a slot: what a writer puts in, a reader gets out; nothing is truncated or copied."""

from __future__ import annotations

import contextlib
import gc
import mmap
import os
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as st_numpy

from edgert.errors import FrameLostError, StageError
from edgert.tensor import (
    COLOUR_MATRICES,
    COLOUR_RANGES,
    DTYPES,
    PIXEL_FORMATS,
    FrameHeader,
    PortSpec,
    TensorSpec,
    image_port,
)
from edgert.transport.address import address_of_map, writable_alias
from edgert.transport.header import ENTRY_BYTES, HEADER_BYTES, MAX_DIMENSIONS, METADATA_AT
from edgert.transport.slot import (
    PAGE_BYTES,
    Loan,
    Sample,
    SlotLayout,
    frame_of,
)

PORT = PortSpec("tensors", {"x": TensorSpec("u8", (4, 6)), "y": TensorSpec("f32", (3,))}, 200)


class Ends(NamedTuple):
    """One slot, mapped for writing and, elsewhere, only for reading."""

    loan: Loan
    sample: Sample
    memory: mmap.mmap


def open_ends(port: PortSpec, index: int = 0) -> Ends:
    layout = SlotLayout.of(port)
    size = layout.slot_bytes * (index + 1)
    fd = os.memfd_create("test")
    os.ftruncate(fd, size)
    written = mmap.mmap(fd, size)
    read = mmap.mmap(fd, size, prot=mmap.PROT_READ)
    os.close(fd)
    loan = Loan(written, layout, index, address_of_map(written))
    loan.clear()
    return Ends(loan, Sample(read, layout, index, address_of_map(read)), written)


@pytest.fixture
def ends() -> Iterator[Ends]:
    return open_ends(PORT)


dtypes = st.sampled_from(sorted(DTYPES))
shapes = st.lists(st.integers(0, 9), max_size=MAX_DIMENSIONS).map(tuple)
specs = st.builds(TensorSpec, dtypes, shapes)
ports = st.builds(
    PortSpec,
    st.just("tensors"),
    st.dictionaries(st.text("abcdefgh_", min_size=1, max_size=8), specs, max_size=6),
    st.integers(0, 5000),
)
finite = st.floats(allow_nan=False, width=64)
headers = st.builds(
    FrameHeader,
    stream=st.integers(0, 2**16 - 1),
    sequence=st.integers(0, 2**64 - 1),
    epoch=st.integers(0, 2**32 - 1),
    pts_ns=st.integers(-(2**63), 2**63 - 1),
    captured_ns=st.integers(-(2**63), 2**63 - 1),
    width=st.integers(0, 2**32 - 1),
    input_width=st.integers(0, 2**32 - 1),
    input_height=st.integers(0, 2**32 - 1),
    height=st.integers(0, 2**32 - 1),
    transform=st.tuples(*[finite] * 6),
    pixel_format=st.sampled_from(sorted(PIXEL_FORMATS)),
    colour_matrix=st.sampled_from(COLOUR_MATRICES),
    colour_range=st.sampled_from(COLOUR_RANGES),
    is_partial=st.booleans(),
)


@given(ports)
def test_tensors_lie_on_pages_of_their_own_after_the_metadata(port):
    layout = SlotLayout.of(port)
    at = layout.metadata_offset + layout.metadata_bytes
    for place in layout.places:
        assert place.offset % PAGE_BYTES == 0
        assert place.offset >= at
        at = place.offset + place.max_bytes
    assert layout.slot_bytes >= at
    assert layout.slot_bytes % PAGE_BYTES == 0


@pytest.mark.parametrize("shape", [(None, 3), (1,) * (MAX_DIMENSIONS + 1)])
def test_a_slot_needs_known_sizes(shape):
    with pytest.raises(ValueError, match="up to 5 known sizes"):
        SlotLayout.of(PortSpec("tensors", {"x": TensorSpec("u8", shape)}))


@given(headers)
def test_a_header_is_read_as_it_was_written(header):
    loan, sample, memory = open_ends(PORT, index=1)
    loan.set_header(header)
    assert sample.header == header
    assert loan.header == header
    assert frame_of(memory, loan.layout, 1) == (header.stream, header.sequence)


@given(headers, st.dictionaries(st.text(max_size=8), st.integers(0, 2**60), max_size=5))
def test_metadata_is_read_as_it_was_written_whatever_the_order(header, metadata):
    loan, sample, _ = open_ends(PORT)
    loan.set_metadata(metadata)
    loan.set_header(header)
    assert (sample.metadata, sample.header) == (metadata, header)


@given(st.data())
def test_tensors_are_read_as_they_were_written(data):
    port = data.draw(ports)
    loan, sample, _ = open_ends(port)
    written = {}
    for name, spec in port.tensors.items():
        if data.draw(st.booleans(), label=f"write {name}"):
            smaller = tuple(data.draw(st.integers(0, size or 0)) for size in spec.shape)
            content = data.draw(st_numpy.arrays(DTYPES[spec.dtype], smaller))
            loan.tensor(name, smaller)[...] = content
            written[name] = content
    loan.finish()
    sample.refresh()
    assert set(sample.tensors) == set(written)
    for name, content in written.items():
        assert sample.tensors[name].dtype == content.dtype
        np.testing.assert_array_equal(sample.tensors[name], content)


@given(st.lists(st.sets(st.sampled_from(["x", "y"])), min_size=1, max_size=6))
def test_each_frame_has_the_tensors_that_were_asked_for_this_time(frames):
    loan, sample, _ = open_ends(PORT)
    for number, names in enumerate(frames):
        for name in names:
            loan.tensor(name)[...] = number
        loan.finish()
        sample.refresh()
        assert set(sample.tensors) == names
        assert all((array == number).all() for array in sample.tensors.values())


def test_a_change_of_shape_is_seen_and_the_same_shape_makes_nothing_new(ends):
    loan, sample, _ = ends
    seen = []
    for shape in [(4, 6), (4, 6), (2, 3)]:
        loan.tensor("x", shape)
        loan.finish()
        sample.refresh()
        seen.append(sample.tensors["x"])
    assert seen[0] is seen[1]
    assert [array.shape for array in seen] == [(4, 6), (4, 6), (2, 3)]


def test_without_a_shape_a_tensor_has_its_largest(ends):
    assert ends.loan.tensor("x").shape == (4, 6)


@pytest.mark.parametrize("shape", [(5, 6), (25,), (1,) * 6, (2**40, 2**40)])
def test_what_does_not_fit_is_lost_with_the_numbers(ends, shape):
    with pytest.raises(FrameLostError, match=r"tensor 'x' of shape .* needs .* bytes"):
        ends.loan.tensor("x", shape)


@pytest.mark.parametrize("shape", [(24,), (2, 2, 6), (1, 2, 3, 2, 2), ()])
def test_any_shape_that_fits_is_taken(ends, shape):
    assert ends.loan.tensor("x", shape).shape == shape


def test_an_unknown_tensor_is_a_bug_of_the_stage(ends):
    with pytest.raises(KeyError):
        ends.loan.tensor("z")


def test_metadata_that_does_not_fit_is_lost_and_the_old_stays_whole(ends):
    ends.loan.set_metadata({"a": 1})
    with pytest.raises(FrameLostError, match="its slot has 200"):
        ends.loan.set_metadata({"a": "x" * 500})
    assert ends.sample.metadata == {"a": 1}


def test_inherit_takes_the_header_and_no_metadata(ends):
    header = FrameHeader(3, 7, 1, 40, 50, 640, 480, is_partial=True)
    ends.loan.set_header(header)
    ends.loan.set_metadata({"a": 1})
    other = open_ends(PORT)
    other.loan.set_metadata({"old": 2})
    other.loan.inherit(ends.sample)
    assert other.sample.header == header
    assert other.sample.metadata == {}


@given(headers, st.tuples(*[st.floats(allow_nan=False)] * 6))
def test_a_transform_is_set_and_the_rest_of_the_header_stays(header, transform):
    loan, sample, _ = open_ends(PORT)
    loan.set_metadata({"a": 1})
    loan.set_header(header)
    loan.set_transform(transform)
    assert sample.header == header._replace(transform=transform)
    assert sample.metadata == {"a": 1}


def test_arrays_are_made_once_for_a_shape_that_comes_again():
    """However often the number of things changes; a view that outlives its frame is still found."""
    port = PortSpec("tensors", {"x": TensorSpec("u16", (300, 4))})
    loan, sample, _ = open_ends(port)
    seen: dict[int, int] = {}
    for number in (*range(100), *range(100), *range(300), 7):
        loan.tensor("x", (number, 4))[...] = number
        loan.finish()
        sample.refresh()
        found = sample.tensors["x"]
        assert found.shape == (number, 4)
        assert (found == number).all()
        if number in seen and len(seen) <= 100:
            assert seen[number] == id(found)
        seen[number] = id(found)
        del found
        assert sample.views_kept() == []
    kept = sample.tensors["x"][1:]
    assert sample.views_kept() == ["x"]
    del kept


def test_a_reader_cannot_write(ends):
    ends.loan.tensor("x")
    ends.loan.finish()
    ends.sample.refresh()
    array = ends.sample.tensors["x"]
    with pytest.raises(ValueError, match="read-only"):
        array[0, 0] = 1
    with pytest.raises(ValueError, match="WRITEABLE"):
        array.flags.writeable = True


def kept_after(ends: Ends, keep) -> list[str]:
    ends.loan.tensor("x")[...] = 1
    ends.loan.tensor("y")[...] = 1
    ends.loan.finish()
    ends.sample.refresh()
    kept = keep(ends.sample.tensors)
    assert kept is not None
    return ends.sample.views_kept()


@pytest.mark.parametrize(
    "keep",
    [
        lambda tensors: tensors["x"],
        lambda tensors: tensors["x"][1:],
        lambda tensors: tensors["x"].T[0],
        lambda tensors: tensors["x"].reshape(-1)[:3],
        lambda tensors: [memoryview(tensors["x"])],
        lambda tensors: np.asarray(tensors["x"]).view("u1")[None],
    ],
)
def test_a_view_that_outlives_its_frame_is_named(ends, keep):
    assert kept_after(ends, keep) == ["x"]


@pytest.mark.parametrize(
    "keep", [lambda tensors: tensors["x"].copy(), lambda tensors: int(tensors["x"].sum())]
)
def test_a_copy_that_outlives_its_frame_is_fine(ends, keep):
    assert kept_after(ends, keep) == []


def test_a_view_given_up_in_time_is_fine(ends):
    kept_after(ends, lambda tensors: tensors["x"][1:])
    gc.collect()
    assert ends.sample.views_kept() == []


def test_addresses_are_where_the_arrays_are():
    loan, sample, _ = open_ends(PORT, index=2)
    loan.tensor("y")
    loan.finish()
    sample.refresh()
    assert loan.address_of("y") == loan.tensor("y").ctypes.data
    assert sample.address_of("y") == sample.tensors["y"].ctypes.data
    assert sample.address_of("y") % PAGE_BYTES == 0


def test_an_alias_shows_the_same_bytes_and_claims_to_be_writable(ends):
    ends.loan.tensor("x")[...] = 7
    ends.loan.finish()
    alias = writable_alias(ends.sample.address_of("x"), 24)
    assert alias.flags.writeable
    assert (alias == 7).all()
    ends.loan.tensor("x")[0, 0] = 9
    assert alias[0] == 9


@pytest.mark.parametrize(("width", "height"), [(321, 241), (1, 1), (3, 2), (4095, 1)])
def test_chroma_of_odd_sizes_rounds_up(width, height):
    """Row P3 of the field."""
    tensors = image_port(width, height, ("i420", "nv12")).tensors
    half = ((height + 1) // 2, (width + 1) // 2)
    assert tensors["u"].shape == tensors["v"].shape == half
    assert tensors["uv"].shape == (*half, 2)
    loan = open_ends(image_port(width, height)).loan
    assert loan.tensor("u").shape == half


def read_all(sample: Sample) -> None:
    """Look at everything that a slot has."""
    _ = sample.header, sample.metadata
    sample.refresh()
    for place in sample.layout.places:
        if place.name in sample.tensors:
            array = sample.tensors[place.name]
            assert array.nbytes <= place.max_bytes
            array.sum()


@given(st.binary(min_size=1, max_size=HEADER_BYTES + 2 * ENTRY_BYTES + 200), st.integers(0, 400))
def test_any_bytes_in_a_header_reach_no_further_than_the_slot(data: bytes, at: int) -> None:
    ends = open_ends(PORT)
    ends.memory[at : at + len(data)] = data
    with contextlib.suppress(StageError), np.errstate(all="ignore"):
        read_all(ends.sample)


@pytest.mark.parametrize(
    ("at", "data", "said"),
    [
        (14, b"\xee", "pixel format 238"),
        (METADATA_AT, b"\xff\xff\xff\xff", "4294967295 bytes of metadata, of 200"),
        (METADATA_AT, b"\x04\x00\x00\x00", "metadata: "),
        (HEADER_BYTES, b"\x63\x02", "dtype 99"),
        (HEADER_BYTES, b"\x00\x09", "dtype 0, 9 dimensions"),
        (HEADER_BYTES + 8, b"\xff" * 8, "shape [18446744073709551615, 6]"),
        (HEADER_BYTES + 8, b"\x00" * 8 + b"\xff" * 8, "shape [0, 18446744073709551615]"),
        (HEADER_BYTES + 8, b"\x00\x10", "shape [4096, 6] of"),
    ],
)
def test_a_damaged_header_is_told(ends: Ends, at: int, data: bytes, said: str) -> None:
    ends.loan.tensor("x")
    ends.loan.tensor("y")
    ends.loan.set_header(FrameHeader())
    ends.loan.finish()
    read_all(ends.sample)
    ends.memory[at : at + len(data)] = data
    with pytest.raises(StageError) as caught:
        read_all(ends.sample)
    assert f"a frame in shared memory: its header is damaged ({said}" in str(caught.value)

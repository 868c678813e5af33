from __future__ import annotations

from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hn

from edgert.coverage import values
from edgert.coverage.adapters import bits

SMALL = st.lists(st.integers(0, 3), max_size=4).map(tuple)


@given(
    st.sampled_from(["f4", "f8", "f2", "i1", "u8", "i8", "?"]).flatmap(
        lambda dtype: hn.arrays(dtype, SMALL)
    )
)
def test_what_is_saved_is_loaded(tmp_path_factory: pytest.TempPathFactory, array: object) -> None:
    path = tmp_path_factory.getbasetemp() / "values.npz"
    given_values = {"a/b": np.asarray(array), "": [np.asarray(array), np.zeros(())], "no": None}
    values.save(path, given_values)
    loaded = values.load(path)
    assert list(loaded) == ["a/b", "", "no"]
    np.testing.assert_array_equal(loaded["a/b"], given_values["a/b"])
    assert loaded["a/b"].dtype == given_values["a/b"].dtype
    assert len(loaded[""]) == 2
    assert loaded["no"] is None


def test_texts_and_small_floats_come_back(tmp_path: Path) -> None:
    floats = np.array([0.5, -2], ml_dtypes.float8_e4m3fn)
    values.save(tmp_path / "v.npz", {"t": np.array([["ä", b"b"]], object), "f": floats})
    loaded = values.load(tmp_path / "v.npz")
    assert loaded["t"].tolist() == [["ä", "b"]]
    assert loaded["f"].dtype == floats.dtype
    assert loaded["f"].tolist() == [0.5, -2]


@given(name=st.sampled_from(sorted(bits.STRANGE)), count=st.integers(0, 9), data=st.data())
def test_what_is_packed_is_unpacked(name: str, count: int, data: st.DataObject) -> None:
    dtype, width = bits.STRANGE[name]
    codes = data.draw(
        st.lists(st.integers(0, 2 ** min(width, 8) - 1), min_size=count, max_size=count)
    )
    if width < 16:
        array = np.array(codes, np.uint8).view(dtype)
    else:
        array = np.array(codes, np.uint16).view(dtype)
    packed = bits.pack(array, width)
    assert len(packed) == -(-count * width // 8)
    unpacked = bits.unpack(packed, name, array.shape)
    np.testing.assert_array_equal(unpacked.astype(np.float64), array.astype(np.float64))


def test_the_first_of_two_halves_lies_in_the_low_bits() -> None:
    assert bits.pack(np.array([1, 2, 3], ml_dtypes.uint4), 4) == bytes([0x21, 0x03])

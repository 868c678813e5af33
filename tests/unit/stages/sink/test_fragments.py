"""What stays of an mp4 that could not be finished: its whole fragments."""

from __future__ import annotations

from pathlib import Path

import pytest

from edgert.stages.sink.fragments import cut_back


def box(name: bytes, content: int) -> bytes:
    return (content + 8).to_bytes(4) + name + bytes(content)


HEAD = box(b"ftyp", 12) + box(b"free", 0) + box(b"moov", 40)
FRAGMENT = box(b"moof", 20) + box(b"mdat", 100)
FIRST = HEAD + box(b"mdat", 100)


@pytest.mark.parametrize(
    ("left", "stays"),
    [
        (FIRST, FIRST),
        (FIRST + FRAGMENT, FIRST + FRAGMENT),
        *((FIRST + FRAGMENT + FRAGMENT[:end], FIRST + FRAGMENT) for end in (1, 7, 8, 28, 60, 127)),
        (FIRST + box(b"moov", 300)[:100], FIRST),
        (FIRST + box(b"moov", 300), FIRST),
        (FIRST[:-1], FIRST[:-1]),
        (FIRST + bytes(100), FIRST),
        (b"no video", b"no video"),
        (b"", b""),
    ],
)
def test_what_follows_the_last_whole_fragment_goes(
    tmp_path: Path, left: bytes, stays: bytes
) -> None:
    file = tmp_path / "out.mp4"
    file.write_bytes(left)
    cut_back(file)
    assert file.read_bytes() == stays

"""An mp4 that could not be finished is cut back to what is whole: players refuse half a fragment.

    ftyp free moov mdat | moof mdat | moof mdat | moof md      the disk was full here
                                                ^ it ends here now

A box begins with its size, u32, and its name, four letters.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

_HEAD = struct.Struct(">I4s")


def cut_back(path: Path) -> int:
    """Take off what follows the last whole fragment; return how many are whole.

    If not even the first one is, everything stays: there is something to see in it.
    """
    with path.open("r+b") as file:
        ends = [end for name, end in _whole_boxes(file) if name == b"mdat"]
        if ends:
            file.truncate(ends[-1])
    return len(ends)


def _whole_boxes(file: BinaryIO) -> Iterator[tuple[bytes, int]]:
    """Yield the name and the end of each box, up to one that is cut off."""
    size, at = os.fstat(file.fileno()).st_size, 0
    while at + _HEAD.size <= size:
        file.seek(at)
        length, name = _HEAD.unpack(file.read(_HEAD.size))
        at += length
        if length < _HEAD.size or at > size:  # 0 and 1 stand for sizes that no fragment has
            return
        yield name, at

"""What is kept of frames that kill their stage: bounded on the disk, and never half a file."""

from __future__ import annotations

import os
import resource
from pathlib import Path

import pytest

from edgert.runtime.kept import BYTES_AT_MOST, FILES_AT_MOST, keep


def names(folder: Path) -> set[str]:
    return {file.name for file in folder.iterdir()}


def age(file: Path, number: int) -> None:
    """Give a file the time of its number: a disk may not tell one moment from the next."""
    os.utime(file, ns=(number, number))


def test_the_newest_few_are_kept(tmp_path: Path) -> None:
    folder = tmp_path / "poison" / "detect"
    for number in range(40):
        age(keep(folder, f"infer.tensor-camera-{number}", b"x" * 1000), number)
    newest = range(40 - FILES_AT_MOST, 40)
    assert names(folder) == {f"infer.tensor-camera-{number}.slot" for number in newest}
    assert folder.stat().st_mode & 0o077 == 0


def test_their_size_is_bounded(tmp_path: Path) -> None:
    third = bytes(BYTES_AT_MOST // 3)
    for number in range(5):
        age(keep(tmp_path, str(number), third), number)
    assert names(tmp_path) == {"2.slot", "3.slot", "4.slot"}
    keep(tmp_path, "whole", bytes(BYTES_AT_MOST))
    assert names(tmp_path) == {"whole.slot"}


def test_one_that_is_larger_than_all_is_refused_and_costs_no_other(tmp_path: Path) -> None:
    keep(tmp_path, "small", b"x")
    with pytest.raises(OSError, match=f"it is larger than all that is kept .{BYTES_AT_MOST} bytes"):
        keep(tmp_path, "huge", bytes(BYTES_AT_MOST + 1))
    assert names(tmp_path) == {"small.slot"}


def test_a_full_disk_leaves_no_half_file(tmp_path: Path) -> None:
    """A limit of the size of files stands in for it."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, before[1]))
    try:
        with pytest.raises(OSError, match="File too large"):
            keep(tmp_path, "frame", b"x" * 5000)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert names(tmp_path) == set()

"""Segments without a name: reserved, read-only for readers, gone with their last holder."""

from __future__ import annotations

import mmap
import os
import resource

import pytest

from edgert.errors import ResourceError
from edgert.transport.segment import create_segment, map_segment, reopen_read_only


def test_what_is_written_is_read() -> None:
    fd = create_segment("camera.image", 8192)
    read_fd = reopen_read_only(fd)
    written, read = map_segment(fd, writable=True), map_segment(read_fd, writable=False)
    written[8191] = 7
    assert read[8191] == 7
    assert len(read) == 8192
    for each in (fd, read_fd):
        os.close(each)


def test_a_reader_cannot_write() -> None:
    fd = create_segment("camera.image", 4096)
    read_fd = reopen_read_only(fd)
    with pytest.raises(TypeError):
        map_segment(read_fd, writable=False)[0] = 1
    with pytest.raises(PermissionError):
        mmap.mmap(read_fd, 4096, mmap.MAP_SHARED, mmap.PROT_READ | mmap.PROT_WRITE)
    for each in (fd, read_fd):
        os.close(each)


def test_every_page_is_reserved() -> None:
    """T4: no page is missing later, when a write to it would be a SIGBUS."""
    fd = create_segment("camera.image", 1 << 20)
    assert os.fstat(fd).st_blocks * 512 == 1 << 20
    os.close(fd)


def test_what_the_kernel_refuses_is_said_in_words() -> None:
    """By a limit of file sizes: asking for more memory than there is would end in a kill."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, before[1]))
    try:
        with pytest.raises(ResourceError) as raised:
            create_segment("camera.image", 8 << 20)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    said = "ring 'camera.image': 8388608 bytes of shared memory cannot be reserved (File too large)"
    assert said in str(raised.value)

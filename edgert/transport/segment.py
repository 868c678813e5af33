"""Shared memory without a name: nothing of it is left anywhere when every process is killed."""

from __future__ import annotations

import mmap
import os

from edgert.errors import ResourceError


def create_segment(name: str, nbytes: int) -> int:
    """Return the fd of a new memfd of ``nbytes``, every page of it reserved.

    Reserving turns a later SIGBUS or kill into an error here; the caller compares the plan with
    the memory there is first (``device/memory.py``), since a cgroup answers with a kill.

    Raises:
        ResourceError: The kernel has not that much memory.
    """
    fd = os.memfd_create(f"edgert:{name}"[:200], os.MFD_CLOEXEC)
    try:
        os.posix_fallocate(fd, 0, nbytes)
    except OSError as error:
        os.close(fd)
        raise ResourceError(
            f"ring {name!r}",
            f"{nbytes} bytes of shared memory cannot be reserved ({error.strerror})",
            "Free memory, or lower limits.in_flight, queue slots or the frame size",
        ) from error
    return fd


def reopen_read_only(fd: int) -> int:
    """Return another fd of the same segment through which nobody can write.

    A seal (F_SEAL_FUTURE_WRITE) would lock out a restarted writer too.
    """
    return os.open(f"/proc/self/fd/{fd}", os.O_RDONLY | os.O_CLOEXEC)


def map_segment(fd: int, *, writable: bool) -> mmap.mmap:
    """Map a whole segment into this process."""
    protection = mmap.PROT_READ | mmap.PROT_WRITE if writable else mmap.PROT_READ
    return mmap.mmap(fd, os.fstat(fd).st_size, mmap.MAP_SHARED, protection)

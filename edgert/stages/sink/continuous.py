"""One line of time over all epochs of a camera, for a file that cannot begin anew."""

from __future__ import annotations

from edgert.tensor import FrameHeader


class ContinuousTimes:
    """Gives the time of each frame of one stream; as the source says it, within an epoch.

    A new epoch begins as long after the frame before as it really came: while a camera is gone, its
    last picture stands.
    """

    def __init__(self) -> None:
        self._epoch: int | None = None
        self._shift_ns = 0
        self._last_ns = 0
        self._captured_ns = 0

    def time_of(self, header: FrameHeader) -> int:
        """Return the time of a frame in ns."""
        if self._epoch is not None and header.epoch != self._epoch:
            gone_ns = max(0, header.captured_ns - self._captured_ns)
            self._shift_ns = self._last_ns + gone_ns - header.pts_ns
        self._epoch = header.epoch
        self._captured_ns = header.captured_ns
        self._last_ns = header.pts_ns + self._shift_ns
        return self._last_ns

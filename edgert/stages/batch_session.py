"""A model compiled for several batch sizes, behind the interface of one session.

    frames  a b c          slots of the ring, anywhere in memory
            | | |  gather: one copy of each input
    inputs [a b c .]       a request's own memory; `.` is padding: what was there before
            inference at the next size up
    outputs[A B C .]
            | | |  scatter: one copy of each output, padding is never looked at
    frames  A B C

A runtime wants a batch in one piece, and the slots of a ring are not: each input and output is
copied once, and counted. (OpenVINO takes a list of tensors and copies them itself, no faster: 201
ms against 192 with four frames of YOLOX-nano, of which gathering took 0.6.) A batch of one frame
that is compiled for is inferred in place. There is a session for each size, since most
accelerators compile for fixed shapes; the requests' memory is shared by all sizes.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Mapping, Sequence
from typing import cast

import numpy as np

from edgert.backends.base import DeviceReport, Done, Session, Targets, Tensors
from edgert.tensor import DTYPES, TensorSpec
from edgert.transport.address import Array

Views = dict[str, Array]


class _Request:
    """The memory of one batch in flight, of the largest size."""

    def __init__(self, single: Session, sizes: Sequence[int]) -> None:
        inputs, outputs = _room(single.inputs, sizes[-1]), _room(single.outputs, sizes[-1])
        self.of_size = {
            size: (_heads(single.inputs, inputs, size), _heads(single.outputs, outputs, size))
            for size in sizes
        }
        self.items_in = _items(single.inputs, inputs, sizes[-1])
        self.items_out = _items(single.outputs, outputs, sizes[-1])

    def gather(self, frames: Sequence[tuple[Tensors, Targets]]) -> int:
        """Copy the inputs of each frame to its place; return how many bytes."""
        copied = 0
        for views, (tensors, _) in zip(self.items_in, frames, strict=False):
            for name, view in views.items():
                view[...] = tensors[name]
                copied += view.nbytes
        return copied

    def scatter(self, frames: Sequence[tuple[Tensors, Targets]]) -> int:
        """Copy each frame's outputs to where they belong; return how many bytes."""
        copied = 0
        for views, (_, targets) in zip(self.items_out, frames, strict=False):
            for name, view in views.items():
                cast("Array", targets[name])[...] = view
                copied += view.nbytes
        return copied


class BatchSession:
    """Sessions of one model for several batch sizes; see ``edgert.backends.base.Session``.

    Args:
        single: What one frame gives; closed with the others, used if 1 is among the sizes.
        by_size: A session for each size, rising.
    """

    def __init__(self, single: Session, by_size: Mapping[int, Session]) -> None:
        self.inputs: Mapping[str, TensorSpec] = single.inputs
        self.outputs: Mapping[str, TensorSpec] = single.outputs
        self.device: DeviceReport = single.device
        self._by_size = dict(by_size)
        self._sizes = tuple(by_size)
        self._size_of = [0] + [
            next(size for size in self._sizes if size >= count)
            for count in range(1, self._sizes[-1] + 1)
        ]
        self._moved_bytes = 0
        self._lock = threading.Lock()  # a runtime may end batches on several threads
        self._idle = deque(_Request(single, self._sizes) for _ in range(single.requests))
        self.requests = single.requests

    @property
    def copied_bytes(self) -> int:
        """Bytes moved by the sessions, and to and from the batches."""
        return self._moved_bytes + sum(each.copied_bytes for each in self._by_size.values())

    def start(self, inputs: Tensors, outputs: Targets, done: Done) -> None:
        """Begin one inference of one frame."""
        self.start_batch([(inputs, outputs)], done)

    def start_batch(self, frames: Sequence[tuple[Tensors, Targets]], done: Done) -> int:
        """Begin one inference of several frames; return the size it runs at."""
        size = self._size_of[len(frames)]
        if size == 1:
            self._by_size[1].start(*frames[0], done)
            return size
        request = self._idle.popleft()

        def ended(error: BaseException | None) -> None:
            if error is None:
                self._count(request.scatter(frames))
            self._idle.append(request)
            done(error)

        self._count(request.gather(frames))
        inputs, outputs = request.of_size[size]
        try:
            self._by_size[size].start(inputs, outputs, ended)
        except BaseException:
            self._idle.append(request)
            raise
        return size

    def close(self) -> None:
        """Wait for what is in flight and give everything back."""
        for session in self._by_size.values():
            session.close()
        self._idle.clear()

    def _count(self, moved_bytes: int) -> None:
        with self._lock:
            self._moved_bytes += moved_bytes


def _room(specs: Mapping[str, TensorSpec], size: int) -> Views:
    return {
        name: np.zeros((_rows(spec) * size, *_rest(spec)), DTYPES[spec.dtype])
        for name, spec in specs.items()
    }


def _heads(specs: Mapping[str, TensorSpec], room: Views, size: int) -> Views:
    return {name: room[name][: _rows(spec) * size] for name, spec in specs.items()}


def _items(specs: Mapping[str, TensorSpec], room: Views, size: int) -> list[Views]:
    return [
        {
            name: room[name][_rows(spec) * item : _rows(spec) * (item + 1)]
            for name, spec in specs.items()
        }
        for item in range(size)
    ]


def _rows(spec: TensorSpec) -> int:
    return spec.shape[0] or 0


def _rest(spec: TensorSpec) -> tuple[int, ...]:
    return tuple(size or 0 for size in spec.shape[1:])

"""A session that is given bytes while its model takes floats: converted here, once, and counted.

For devices to which a conversion cannot be given with the model: Qualcomm's HTP takes a cast from
u8 and computes nothing with what comes out of it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from functools import partial

import numpy as np

from edgert.backends.base import ByteInput, Done, Session, Signature, Targets, Tensors
from edgert.backends.binding import ports
from edgert.backends.byte_input import writer
from edgert.tensor import DTYPES, TensorSpec
from edgert.transport.address import Array


class ByteFedSession:
    """Another session behind a conversion; see ``edgert.backends.base.Session``.

    Args:
        inner: The session of the model itself.
        seen: Inputs and outputs as callers see them (``byte_input.with_bytes``).
        conversions: Inputs that are given as bytes.
    """

    def __init__(
        self, inner: Session, seen: Signature, conversions: Mapping[str, ByteInput]
    ) -> None:
        self.inputs: Mapping[str, TensorSpec] = seen.inputs
        self.outputs: Mapping[str, TensorSpec] = seen.outputs
        self.device = inner.device
        self.requests = inner.requests
        self.copied_bytes = 0
        self._inner = inner
        self._moved = 0
        given = {name: seen.inputs[name] for name in conversions}
        self._ports = ports(inner.device.actual, given)
        own = {name: inner.inputs[name] for name in conversions}
        self._writes = {name: writer(own[name], how) for name, how in conversions.items()}
        self._pool = deque(
            {
                name: np.empty([size or 0 for size in spec.shape], DTYPES[spec.dtype])
                for name, spec in own.items()
            }
            for _ in range(inner.requests)
        )

    def start(self, inputs: Tensors, outputs: Targets, done: Done) -> None:
        """Begin one inference on the caller's memory."""
        for port in self._ports:
            port.address(inputs)  # refuses an array that does not fit
        floats = self._pool.popleft()
        for name, write in self._writes.items():
            write(floats[name], inputs[name])
            self._moved += floats[name].nbytes
        try:
            self._inner.start({**inputs, **floats}, outputs, partial(self._end, floats, done))
        except BaseException:
            self._pool.append(floats)
            raise

    def close(self) -> None:
        """Wait for what is in flight and give everything back."""
        self._inner.close()
        self._pool.clear()

    def _end(self, floats: dict[str, Array], done: Done, error: BaseException | None) -> None:
        self.copied_bytes = self._moved + self._inner.copied_bytes
        self._pool.append(floats)
        done(error)

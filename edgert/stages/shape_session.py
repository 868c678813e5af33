"""A model compiled for several input shapes, behind the interface of one session."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import cast

from edgert.backends.base import DeviceReport, Done, Fit, Session, Targets, Tensors
from edgert.errors import FrameLostError
from edgert.stages.shape_ranges import Shapes, common, said
from edgert.stages.variants import Compile, Variants, warmed_up
from edgert.tensor import TensorSpec
from edgert.transport.address import Array

Key = tuple[tuple[int, ...], ...]


class ShapeSession:
    """Sessions of one model, of which a frame takes the one of its shape.

    Where sizes differ between them, ``outputs`` shows None, and a ``Fit`` is given: it is asked for
    the room of this frame's shape, and the result is written there in place.

    Args:
        sessions: At least one; the devices are the same.
    """

    def __init__(self, sessions: Sequence[Session]) -> None:
        self.inputs: Mapping[str, TensorSpec] = common([each.inputs for each in sessions])
        self.outputs: Mapping[str, TensorSpec] = common([each.outputs for each in sessions])
        self.device: DeviceReport = sessions[0].device
        self.requests = sessions[0].requests
        self._by_shape = {_key(each.inputs): each for each in sessions}
        self._names = tuple(self.inputs)

    @property
    def copied_bytes(self) -> int:
        """Bytes moved by the sessions."""
        return sum(each.copied_bytes for each in self._by_shape.values())

    def start(self, inputs: Tensors, outputs: Targets, done: Done) -> None:
        """Begin one inference in the shape of its inputs.

        Raises:
            FrameLostError: Nothing was prepared for that shape.
        """
        key = tuple(inputs[name].shape if name in inputs else () for name in self._names)
        session = self._by_shape.get(key)
        if session is None:
            raise FrameLostError(self._unknown(key))
        session.start(inputs, _room(session, outputs), done)

    def close(self) -> None:
        """Wait for what is in flight and give everything back."""
        for session in self._by_shape.values():
            session.close()

    def _unknown(self, key: Key) -> str:
        given = ", ".join(
            f"{name!r} has shape {list(shape)}"
            for name, shape in zip(self._names, key, strict=True)
        )
        known = "; ".join(" and ".join(str(list(shape)) for shape in key) for key in self._by_shape)
        return f"{given} in this frame, and the model is prepared for {known}"


def _key(specs: Mapping[str, TensorSpec]) -> Key:
    return tuple(tuple(size or 0 for size in spec.shape) for spec in specs.values())


def _room(session: Session, outputs: Targets) -> dict[str, Array | Fit]:
    targets = dict(outputs)
    for name, spec in session.outputs.items():
        if spec.is_static and callable(targets[name]):
            fit = cast("Fit", targets[name])
            targets[name] = fit(tuple(size or 0 for size in spec.shape))
    return targets


def open_shapes(
    compile_for: Compile, first: Session, others: Sequence[Shapes], variants: Variants
) -> ShapeSession:
    """Compile a model for every other shape beside ``first``.

    Raises:
        DeviceError: The device refuses one of the shapes.
    """

    def make(shapes: Shapes) -> Session:
        return warmed_up(compile_for(shapes), lambda _: None)

    added = [variants.add(f"shape {said(shapes)}", partial(make, shapes)) for shapes in others]
    return ShapeSession([first, *added])

"""``postprocess.pose``: a model's outputs become poses in pixels of the source frame."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Literal, NamedTuple

import msgspec
import numpy as np

from edgert.errors import ModelError, UserError
from edgert.models.describe import PoseHead
from edgert.options import Pixels, option
from edgert.stages.base import Inputs, Outputs, PlanContext, Ports, Stage, StageOptions
from edgert.stages.geometry import map_points
from edgert.stages.postprocess.described import choose_tensors, read_names
from edgert.stages.postprocess.sizes import BySize, in_each_size, sizes_of
from edgert.tensor import IDENTITY, PortSpec, TensorSpec
from edgert.transport.address import Array

ROLES: dict[str, tuple[str, ...]] = {
    "movenet": ("keypoints",),
    "blazepose": ("keypoints", "score"),
}
_BLAZEPOSE_NUMBERS = 5  # x, y, z, visibility, presence


class PoseOptions(StageOptions):
    """Options of ``postprocess.pose``; what is left out comes from the model's metadata."""

    threshold: float = option(
        default=0.25, gt=0, le=1, description="Lowest score of a pose. Its points are all told."
    )
    model: str | None = option(
        default=None, description="Model whose metadata is used; else the one whose outputs arrive."
    )
    family: Literal["movenet", "blazepose"] | None = option(
        default=None, description="How the outputs are to be read."
    )
    tensors: dict[str, str] | None = option(
        default=None,
        description="Role -> name of the output: `keypoints`; for blazepose also `score`.",
    )
    keypoints: tuple[str, ...] | str | None = option(
        default=None, description="Name of each point, or a text file with one on each line."
    )
    size: tuple[Pixels, Pixels] | None = option(
        default=None, description="`[width, height]` of the model's input, where it is not known."
    )


class Person(NamedTuple):
    """What a model says of one person.

    Attributes:
        score: Confidence, 0 to 1.
        points: [N, 2], x and y in pixels of the model's input.
        sure: [N], the confidence of each point.
    """

    score: float
    points: Array
    sure: Array


class PosePostprocess(Stage):
    """Find the poses in a model's outputs, as named points in pixels of the source frame."""

    inputs: ClassVar[Mapping[str, str]] = {"raw": "tensors"}
    outputs: ClassVar[Mapping[str, str]] = {"poses": "poses"}
    options: ClassVar[type[StageOptions]] = PoseOptions
    is_stateless = True
    live_options = frozenset({"threshold"})
    settings: PoseOptions

    @classmethod
    def plan(cls, options: PoseOptions, inputs: Ports, context: PlanContext) -> dict[str, PortSpec]:
        """Say how many points there are, and put into attributes how they are found."""
        port, where = inputs["raw"], f"{context.place}, input 'raw'"
        each = in_each_size(options.model, port, context)
        described = each[0].model
        head = _head(described.pose if described else None, options, port, context)
        for one in each:
            _check_shape(head, one.port.tensors[head.tensors["keypoints"]], where)
        attributes = {
            "keypoints": list(head.keypoints),
            "head": msgspec.to_builtins(head),
            "sizes": sizes_of(each, options.size, where),
        }
        tensors = {
            "keypoints": TensorSpec("f32", (1, len(head.keypoints), 3)),
            "scores": TensorSpec("f32", (1,)),
        }
        return {"poses": PortSpec("poses", tensors, attributes=attributes)}

    def open(self) -> None:
        """Choose how the model is read."""
        attributes = self.context.outputs["poses"].attributes
        head = msgspec.convert(attributes["head"], PoseHead)
        sizes, make = attributes["sizes"], READERS[head.family]
        self._readers = BySize(sizes, [make(head, width, height) for width, height in sizes])

    def process(self, inputs: Inputs, outputs: Outputs) -> None:
        """Write the pose of one frame, or none."""
        sample, loan = inputs["raw"], outputs["poses"]
        header = sample.header
        person = self._readers.of(header)(sample.tensors)
        # What is no number is no point, and NaN reaches no threshold.
        is_there = person.score >= self.settings.threshold and np.isfinite(person.points).all()
        count = int(is_there)
        keypoints = loan.tensor("keypoints", (count, len(person.points), 3))
        loan.tensor("scores", (count,))[...] = person.score
        if is_there:
            keypoints[0, :, :2] = map_points(person.points, header.transform)
            keypoints[0, :, 2] = person.sure
        loan.set_transform(IDENTITY)


Read = Callable[[Mapping[str, Array]], Person]


def movenet(head: PoseHead, width: int, height: int) -> Read:
    """Return the reader of MoveNet for one person: y, x, score of each point.

    The pose's score is the mean of its points'.
    """
    name, size = head.tensors["keypoints"], (width, height)

    def read(tensors: Mapping[str, Array]) -> Person:
        found = tensors[name].reshape(-1, 3)
        sure = found[:, 2].copy()
        return Person(float(sure.mean()), found[:, 1::-1] * size, sure)

    return read


def blazepose(head: PoseHead, width: int, height: int) -> Read:
    """Return the reader of BlazePose: x, y, z, visibility, presence of each point.

    Behind the body's points come six that are for its tracker alone.
    """
    name, flag, count = head.tensors["keypoints"], head.tensors["score"], len(head.keypoints)

    def read(tensors: Mapping[str, Array]) -> Person:
        found = tensors[name].reshape(-1, _BLAZEPOSE_NUMBERS)[:count]
        with np.errstate(over="ignore"):
            sure = 1 / (1 + np.exp(-found[:, 3]))
        return Person(float(tensors[flag].flat[0]), found[:, :2].astype(np.float64), sure)

    return read


READERS: dict[str, Callable[[PoseHead, int, int], Read]] = {
    "movenet": movenet,
    "blazepose": blazepose,
}


def _head(
    known: PoseHead | None, options: PoseOptions, port: PortSpec, context: PlanContext
) -> PoseHead:
    where = f"{context.place}, input 'raw'"
    fields: dict[str, Any] = msgspec.structs.asdict(known) if known else {}
    if options.family and options.family != fields.get("family"):
        fields = {"family": options.family, "keypoints": fields.get("keypoints")}
    if options.keypoints is not None:
        fields["keypoints"] = read_names(options.keypoints, "keypoints", context)
    missing = [key for key in ("family", "keypoints") if not fields.get(key)]
    if missing:
        fault = "nothing is known of how the model's outputs become poses"
        raise UserError(where, fault, f"Give {', '.join(f'`{key}:`' for key in missing)}")
    roles = ROLES[fields["family"]]
    fields["tensors"] = choose_tensors(
        fields.get("tensors") or {}, options.tensors, roles, port, where
    )
    return PoseHead(**fields)


def _check_shape(head: PoseHead, spec: TensorSpec, where: str) -> None:
    """Refuse an output that does not hold the points.

    Raises:
        ModelError: It does not.
    """
    count, numbers = len(head.keypoints), spec.nbytes // 4
    if head.family == "movenet":
        fits, wanted = numbers == 3 * count, f"{count} points of 3 numbers"
    else:
        fits = numbers % _BLAZEPOSE_NUMBERS == 0 and numbers >= _BLAZEPOSE_NUMBERS * count
        wanted = f"at least {count} points of {_BLAZEPOSE_NUMBERS} numbers"
    if spec.dtype != "f32" or not fits:
        fault = f"output {head.tensors['keypoints']!r} is {spec}, and {wanted} in f32 are needed"
        raise ModelError(where, fault, "Give the right `family:`, `keypoints:` or `tensors:`")

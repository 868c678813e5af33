"""The model whose outputs arrive at a postprocess stage, and the size of its picture input."""

from __future__ import annotations

from typing import Any

from edgert.errors import UserError
from edgert.models.describe import ModelDescription
from edgert.paths import below
from edgert.regular import open_regular
from edgert.stages.base import PlanContext
from edgert.tensor import PortSpec, TensorSpec

_MAX_NAMES_BYTES = 1 << 20


def describe(named: str | None, port: PortSpec, context: PlanContext) -> ModelDescription | None:
    """Return the model whose outputs arrive; None where nobody says which one that is.

    Args:
        named: The model that the stage's options name; else the port says it.
        port: What arrives.
        context: Who describes models.
    """
    arriving = port.attributes.get("model")
    model = named or arriving
    if model is None:
        return None
    shapes: dict[str, Any] = {}
    if model == arriving:
        shapes = port.attributes.get("model_file", {}).get("shapes", {})
    described: ModelDescription = context.models.describe(model, shapes)
    return described


def read_names(names: tuple[str, ...] | str, key: str, context: PlanContext) -> tuple[str, ...]:
    """Return names as given, or read from a text file with one on each line.

    Raises:
        UserError: The file cannot be read.
    """
    if not isinstance(names, str):
        return names
    return tuple(line.strip() for line in read_lines(names, key, context) if line.strip())


def read_lines(name: str, key: str, context: PlanContext) -> list[str]:
    """Return the lines of a text file.

    Raises:
        UserError: It cannot be read.
    """
    path = below(context.folder, name)
    place = f"{context.place}, {key}"
    try:
        with open_regular(path) as file:
            text = file.read(_MAX_NAMES_BYTES + 1)
        if len(text) > _MAX_NAMES_BYTES:
            raise UserError(place, f"{path} is too large", "Give a text file, one label a line")
        return text.decode("utf-8").splitlines()
    except OSError as error:
        fault = f"cannot read {path}: {error.strerror}"
        raise UserError(place, fault, "Give a text file, one label a line") from None
    except UnicodeDecodeError:
        raise UserError(place, f"{path} is not UTF-8 text", "Give one label a line") from None


def input_size(
    described: ModelDescription | None, given: tuple[int, int] | None, where: str
) -> tuple[int, int]:
    """Return width and height of the model's picture input.

    Raises:
        UserError: They are not known.
    """
    if given is not None:
        return given
    if described is not None:
        name = described.image.tensor if described.image else next(iter(described.inputs), "")
        spec = described.inputs.get(name)
        size = _size_of(spec, described.image.layout if described.image else "") if spec else None
        if size is not None:
            return size
    fault = "the size of the model's picture input is not known"
    raise UserError(where, fault, "Give `size: [width, height]`")


def choose_tensors(
    known: dict[str, str],
    given: dict[str, str] | None,
    roles: tuple[str, ...],
    port: PortSpec,
    where: str,
) -> dict[str, str]:
    """Return role -> name of the output, each of them proved to be there.

    Args:
        known: By the model's own metadata.
        given: By the stage's options, which go first.
        roles: Those that are needed.
        port: What arrives; of one tensor and one role nothing need be said.
        where: The place of errors.

    Raises:
        UserError: A role is not known, or what it names does not arrive.
    """
    chosen = dict(known if given is None else given)
    if not chosen and len(roles) == len(port.tensors) == 1:
        chosen = {roles[0]: next(iter(port.tensors))}
    there = ", ".join(f"{name} ({spec})" for name, spec in port.tensors.items())
    if set(chosen) != set(roles):
        fault = "it is not known which output is which"
        mend = f"Give `tensors: {{ROLE: OUTPUT}}` for {', '.join(roles)}; outputs: {there}"
        raise UserError(where, fault, mend)
    absent = [name for name in chosen.values() if name not in port.tensors]
    if absent:
        raise UserError(where, f"what arrives has no tensor {absent[0]!r}", f"It has: {there}")
    return chosen


def _size_of(spec: TensorSpec, layout: str) -> tuple[int, int] | None:
    if len(spec.shape) != 4:
        return None
    is_nchw = layout == "NCHW" or (not layout and spec.shape[1] in (1, 3))
    height, width = spec.shape[2:] if is_nchw else spec.shape[1:3]
    return (width, height) if width and height else None

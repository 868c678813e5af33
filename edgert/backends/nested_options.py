"""Options of a backend that have options of their own: every fault of them at once.

Apart from ``options.py``, since a worker that imports pydantic for it grows by 10 MB.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, TypeVar, get_args

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from edgert.backends.options import device_error, unknown_option
from edgert.errors import Fault, KeyFault

Model = TypeVar("Model", bound=BaseModel)


def read_all_options(kind: type[Model], given: Mapping[str, Any], place: str) -> Model:
    """Return ``given`` as a ``kind``, for options that have options of their own.

    Raises:
        DeviceError: With every fault there is.
    """
    try:
        return kind.model_validate(given)
    except ValidationError as error:
        found = error.errors(include_url=False)
        raise device_error([_fault_of(kind, each, place) for each in found]) from error


def _fault_of(kind: type[BaseModel], error: ErrorDetails, place: str) -> Fault:
    *above, last = error["loc"] or ("",)
    path = tuple(map(str, error["loc"]))
    if error["type"] == "extra_forbidden":
        where = ", ".join([place, *map(str, above)])
        unknown = unknown_option(str(last), [*_owner(kind, above).model_fields], where).fault
        return replace(unknown, path=path)
    where = ", ".join([place, "options", *map(str, error["loc"])])
    said = error["msg"].removeprefix("Value error, ").replace("Input ", "it ", 1)
    return KeyFault(where, f"{said[0].lower()}{said[1:]}", path=path)


def _owner(kind: type[BaseModel], path: Iterable[Any]) -> type[BaseModel]:
    """Return the options that a key path leads to."""
    for key in path:
        annotation = kind.model_fields[key].annotation
        kind = next(each for each in (annotation, *get_args(annotation)) if _is_model(each))
    return kind


def _is_model(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, BaseModel)

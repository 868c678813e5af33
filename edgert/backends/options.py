"""Options of a backend's own, as the file has them: unknown keys and wrong types are faults."""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar, get_args

import msgspec
from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from edgert.errors import DeviceError, Fault, KeyFault

Options = TypeVar("Options", bound=msgspec.Struct)
Model = TypeVar("Model", bound=BaseModel)


class UnknownOptionError(DeviceError):
    """A runtime has no option of that name.

    Args:
        key: The option.
    """

    def __init__(self, place: str, key: str, mend: str) -> None:
        fault = f"there is no option {key!r}"
        super().__init__(place, fault, mend)
        self.fault = KeyFault(place, fault, mend, path=(key,), is_unknown=True)
        self.faults = (self.fault,)
        self.key = key


def read_options(kind: type[Options], given: Mapping[str, Any], place: str) -> Options:
    """Return ``given`` as a ``kind``.

    Args:
        kind: A msgspec struct whose fields are the options there are.
        given: The options as written.
        place: With which the error begins.

    Raises:
        DeviceError: A key is unknown, or a value has the wrong type.
    """
    known = [field.encode_name for field in msgspec.structs.fields(kind)]
    for key in given:
        if key not in known:
            raise unknown_option(key, known, place)
    try:
        return msgspec.convert(dict(given), kind)
    except msgspec.ValidationError as error:
        at = re.search(r"\$\.(\w+)", str(error))
        path = (at[1],) if at else ()
        fault = KeyFault(f"{place}, options", str(error), path=path)
        raise device_error([fault]) from error


def as_text(options: Mapping[str, Any]) -> dict[str, str]:
    """Return options as plug-ins and delegates take them: texts, ``true`` and ``false``."""
    return {
        key: str(value).lower() if isinstance(value, bool) else str(value)
        for key, value in options.items()
    }


def unknown_option(key: str, known: Collection[str], place: str) -> UnknownOptionError:
    """Return the error that names the near miss, or every option there is."""
    near = difflib.get_close_matches(key.lower(), [name.lower() for name in known], 1)
    names = [name for name in known if name.lower() in near] or sorted(known)
    mend = f"Did you mean {names[0]!r}?" if near else f"Its options: {', '.join(names)}"
    return UnknownOptionError(f"{place}, options", key, mend)


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


def device_error(faults: Sequence[Fault]) -> DeviceError:
    """Return one error of several faults."""
    error = DeviceError(faults[0].place, faults[0].fault, faults[0].mend)
    error.faults = tuple(faults)
    return error


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

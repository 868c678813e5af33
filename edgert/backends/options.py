"""Options of a backend's own, as the file has them: unknown keys and wrong types are faults."""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any, TypeVar

import msgspec

from edgert.errors import DeviceError, Fault, KeyFault

Options = TypeVar("Options", bound=msgspec.Struct)


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


def device_error(faults: Sequence[Fault]) -> DeviceError:
    """Return one error of several faults."""
    error = DeviceError(faults[0].place, faults[0].fault, faults[0].mend)
    error.faults = tuple(faults)
    return error

"""Options of a backend's own, as the file has them: unknown keys and wrong types are faults."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Mapping
from typing import Any, TypeVar

import msgspec

from edgert.errors import DeviceError

Options = TypeVar("Options", bound=msgspec.Struct)


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
        raise DeviceError(f"{place}, options", str(error)) from error


def unknown_option(key: str, known: Collection[str], place: str) -> DeviceError:
    """Return the error that names the near miss, or every option there is."""
    near = difflib.get_close_matches(key.lower(), [name.lower() for name in known], 1)
    names = [name for name in known if name.lower() in near] or sorted(known)
    mend = f"Did you mean {names[0]!r}" if near else f"Its options: {', '.join(names)}"
    return DeviceError(f"{place}, options", f"there is no option {key!r}", mend)

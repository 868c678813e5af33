"""Options of the TFLite backend; read without its library, so that ``edgert check`` knows them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from edgert.backends.options import read_options


class TfliteOptions(msgspec.Struct, frozen=True):
    """Options of this backend.

    Attributes:
        xnnpack: Whether XNNPACK computes on the CPU. Beside a delegate it is off: what the
            delegate took could not be told from what XNNPACK took.
        delegate: Options of the delegate's own; they say nothing to the CPU, which may be the
            next device to be tried.
    """

    xnnpack: bool | None = None
    delegate: dict[str, str | int | float | bool] = {}


NAMES = frozenset(TfliteOptions.__struct_fields__)


def read(given: Mapping[str, Any], place: str) -> TfliteOptions:
    """Return options as written.

    Raises:
        DeviceError: A key is unknown, or a value is none of its own.
    """
    return read_options(TfliteOptions, given, place)

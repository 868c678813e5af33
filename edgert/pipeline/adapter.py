"""What pydantic makes of a class: the one place where options of stages meet it.

A file's own parts (``spec.py``) are pydantic's models, options of stages are plain dataclasses
(``edgert/options.py``), so that workers need not load it. Here both are the same.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any, TypeVar

from pydantic import TypeAdapter

from edgert.options import Options

# What pydantic calls a key too many, in a model and in a dataclass.
UNKNOWN = {"extra_forbidden", "unexpected_keyword_argument"}

Kind = TypeVar("Kind")


def adapter_of(kind: Any) -> TypeAdapter[Any]:
    """Return what reads values as a class, and knows its JSON schema; made once for each class."""
    return _made(kind)


@cache
def _made(kind: Any) -> TypeAdapter[Any]:
    return TypeAdapter(kind)


def read_as(kind: type[Kind], value: Any) -> Kind:
    """Return a value as written as an instance of a class.

    Raises:
        pydantic.ValidationError: With every error.
    """
    made: Kind = adapter_of(kind).validate_python(value)
    return made


def plain_of(options: Options, written: Mapping[str, Any]) -> dict[str, Any]:
    """Return options as plain values, of those keys that the file has.

    ``edgert.options.restore`` makes the options of them again, in another process.
    """
    plain = adapter_of(type(options)).dump_python(options, mode="json", by_alias=True)
    return {key: value for key, value in plain.items() if key in written}

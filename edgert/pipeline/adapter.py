"""What pydantic makes of a class: the one place where options of stages meet it.

A file's own parts (``spec.py``) are pydantic's models, options of stages are plain dataclasses
(``edgert/options.py``), so that workers need not load it. Here both are the same.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any, TypeVar

from pydantic import TypeAdapter
from pydantic_core import PydanticSerializationError

from edgert.options import Options, keys_of, restore

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


def misfits(options: Options, written: Mapping[str, Any]) -> list[str]:
    """Return the names of values that a worker would get as something else, or not at all.

    Those of types that ``restore`` does not know: a stage of somebody else's may have them.
    """
    try:
        there = restore(type(options), plain_of(options, written))
    except PydanticSerializationError:
        return [key for key in keys_of(type(options)) if key in written]
    return [name for name, value in vars(options).items() if getattr(there, name) != value]

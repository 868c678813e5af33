"""How a stage declares the keys it has in the pipeline file, without loading what checks them.

    class BlurOptions(StageOptions):
        radius: int = option(default=3, ge=1, le=99, description="Pixels to each side.")

Options are frozen dataclasses. Only ``edgert check`` and what plans a run make them of a file, by
pydantic (``pipeline/adapter.py``), which reads the rules of ``option``; a worker gets what was
checked and needs no pydantic, which would be half a megabyte in each.
"""

from __future__ import annotations

import copy
import enum
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import MISSING, Field, dataclass, field, fields
from functools import partial
from pathlib import PurePath
from types import UnionType
from typing import (
    Annotated,
    Any,
    ClassVar,
    TypeVar,
    Union,
    dataclass_transform,
    get_args,
    get_origin,
    get_type_hints,
)

from annotated_types import Interval

_RULES = {
    "alias", "ge", "gt", "le", "lt", "min_length", "max_length", "pattern", "allow_inf_nan",
}  # fmt: skip
_HOLDERS = (tuple, list, set, frozenset)


class Refusal(ValueError):  # noqa: N818  it is one: what `check` raises
    """How options refuse a value, in the two parts that a fault is told in.

    Args:
        fault: What is wrong.
        mend: What to do.
    """

    def __init__(self, fault: str, mend: str) -> None:
        super().__init__(f"{fault}. {mend}")
        self.fault, self.mend = fault, mend


def option(*, default: Any = MISSING, description: str = "", **rules: Any) -> Any:
    """Return a key's default, what documents it, and the rules that a value must keep to.

    Args:
        default: What it is where the file does not give it; a key without one must be given.
        description: For ``docs/pipeline-file.md``, the schema, and who misses the key.
        **rules: ``ge gt le lt min_length max_length pattern allow_inf_nan``, as pydantic's
            ``Field`` has them, and ``alias``: the key in the file, where it is no name in Python.

    Raises:
        TypeError: There is no such rule.
    """
    if not rules.keys() <= _RULES:
        raise TypeError(f"an option knows {', '.join(sorted(_RULES))}, not {', '.join(rules)}")
    told = {"description": description, **rules}
    if isinstance(default, list | dict):
        schema = {"default": default}
        return field(
            default_factory=partial(copy.deepcopy, default),
            metadata={**told, "json_schema_extra": schema},
        )
    return field(default=default, metadata=told)


@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(option,))
class Options:
    """Keys that belong together: every subclass is a frozen dataclass, all by keyword.

    Unknown keys are faults. Types are numbers, text, booleans, ``Literal``, enums, paths, other
    ``Options``, and lists, tuples and mappings of plain values.
    """

    # What leaves for a worker is as it was: an infinity is no null.
    __pydantic_config__: ClassVar[dict[str, Any]] = {
        "extra": "forbid", "ser_json_inf_nan": "constants",
    }  # fmt: skip

    def __init_subclass__(cls) -> None:
        for name, value in vars(cls).items():
            if type(value).__name__ == "FieldInfo":
                raise TypeError(
                    f"{cls.__name__}.{name}: write edgert.options.option(), not Field()"
                )
        dataclass(frozen=True, kw_only=True)(cls)

    def check(self, given: frozenset[str]) -> None:
        """Look at how keys go together, each of which is right in itself.

        Args:
            given: The keys that the file has.

        Raises:
            Refusal: They do not.
        """

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: Callable[[Any], Any]) -> Any:
        """Have pydantic call ``check`` last."""
        from pydantic_core import core_schema

        def read(value: Any, fields_of: Callable[[Any], Options]) -> Options:
            made = fields_of(value)
            made.check(frozenset(value if isinstance(value, Mapping) else ()))
            return made

        return core_schema.no_info_wrap_validator_function(read, handler(source))


class Before:
    """Beside a type in ``Annotated``: what is written becomes, by a function, what the type takes.

    Args:
        function: Given the value as written; returns another, or the same.
    """

    def __init__(self, function: Callable[[Any], Any]) -> None:
        self._function = function

    def __get_pydantic_core_schema__(self, source: Any, handler: Callable[[Any], Any]) -> Any:
        """Have pydantic call the function first."""
        from pydantic_core import core_schema

        return core_schema.no_info_before_validator_function(self._function, handler(source))


class Finite:
    """Beside ``float`` in ``Annotated``: neither infinite nor not a number."""

    def __get_pydantic_core_schema__(self, source: Any, handler: Callable[[Any], Any]) -> Any:
        """Have pydantic refuse them."""
        return {**handler(source), "allow_inf_nan": False}


Number = Annotated[float, Finite()]
Pixels = Annotated[int, Interval(ge=1, le=16384)]


def keys_of(kind: type[Options]) -> tuple[str, ...]:
    """Return the keys that a class of options has in a file, in their order."""
    return tuple(map(_key, _fields(kind)))


Made = TypeVar("Made", bound=Options)
_types: dict[Any, dict[str, Any]] = {}


def restore(kind: type[Made], plain: Mapping[str, Any]) -> Made:
    """Return options of plain values that were checked before (``pipeline/adapter.py: plain_of``).

    Args:
        kind: Their class.
        plain: Key -> value; those that are not there are what they are by default.
    """
    types = types_of(kind)
    return kind(
        **{
            each.name: _restored([types[each.name]], plain[_key(each)])
            for each in _fields(kind)
            if _key(each) in plain
        }
    )


def types_of(kind: Any) -> dict[str, Any]:
    """Return the type of each field, found out once: a zygote does so before the fork."""
    if kind not in _types:
        _types[kind] = get_type_hints(kind)
    return _types[kind]


def _fields(kind: Any) -> tuple[Field[Any], ...]:
    return fields(kind)  # every subclass of Options is a dataclass, which mypy cannot know


def _key(of: Field[Any]) -> str:
    return str(of.metadata.get("alias") or of.name)


def _restored(types: Iterable[Any], value: Any) -> Any:
    """Return a plain value as one of several types has it."""
    kinds = [*_alternatives(types)]
    if isinstance(value, dict):  # asking for a Mapping costs a worker 100 kB of its own
        owner = _first(kinds, Options)
        if owner is not None:
            return restore(owner, value)
        inner = _inside(kinds, (dict,))
        return {key: _restored(inner, item) for key, item in value.items()}
    if isinstance(value, list):
        holder = next((get_origin(each) for each in kinds if get_origin(each) in _HOLDERS), list)
        inner = _inside(kinds, _HOLDERS)
        return holder([_restored(inner, item) for item in value])
    made_of = _first(kinds, PurePath) or _first(kinds, enum.Enum)
    return value if made_of is None or value is None else made_of(value)


def _alternatives(types: Iterable[Any]) -> Iterator[Any]:
    for each in types:
        is_union = get_origin(each) in {Union, UnionType}
        yield from _alternatives(get_args(each)) if is_union else [each]


def _inside(kinds: Iterable[Any], holders: tuple[type, ...]) -> list[Any]:
    """Return the types of what is in a list or a mapping."""
    return [inner for each in kinds if get_origin(each) in holders for inner in get_args(each)]


def _first(kinds: Iterable[Any], base: type) -> Any:
    return next((each for each in kinds if isinstance(each, type) and issubclass(each, base)), None)

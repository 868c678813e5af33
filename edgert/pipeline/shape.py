"""What a class expects at a key path, read from its JSON schema."""

from __future__ import annotations

from functools import cache
from typing import Any

from pydantic.errors import PydanticInvalidForJsonSchema

from edgert.pipeline.adapter import adapter_of
from edgert.pipeline.marks import Loc

Shape = dict[str, Any]
NUMBERS = {"number", "integer"}


def schema_of(model: Any) -> Shape:
    """Return the JSON schema of a class; empty where it has none (a type of a third party)."""
    return _schema(model)


@cache
def _schema(model: Any) -> Shape:
    try:
        return adapter_of(model).json_schema()
    except PydanticInvalidForJsonSchema:
        return {}


def shape_at(model: type, loc: Loc) -> Shape:
    """Return the schema of the value at a key path below a class; empty where nothing is known."""
    root = schema_of(model)
    here = root
    for part in loc:
        here = next((step for step in _steps(here, part, root)), {})
    found = _resolved(here, root)
    if "anyOf" in found:  # a key that may be left out is a choice of its shape and null
        found["anyOf"] = [_resolved(each, root) for each in found["anyOf"]]
    return found


def properties_of(shape: Shape) -> list[str]:
    """Return the keys that a mapping of a shape may have."""
    inner = [key for each in shape.get("anyOf", []) for key in properties_of(each)]
    return [*shape.get("properties", {}), *inner]


def types_of(shape: Shape) -> set[str]:
    """Return the JSON types that a shape allows; empty where nothing is said."""
    types = [{shape["type"]}] if isinstance(shape.get("type"), str) else []
    types += [types_of(each) for each in shape.get("anyOf", [])]
    return set().union(*types)


def is_number(shape: Shape) -> bool:
    """Whether a shape takes numbers, and neither true nor false."""
    types = types_of(shape)
    return bool(types & NUMBERS) and "boolean" not in types


def range_of(shape: Shape) -> str:
    """Return the range of a number in words: ``between 0 and 1``; empty where there is none."""
    for each in [shape, *shape.get("anyOf", [])]:
        said = _range(each)
        if said:
            return said
    return ""


def _range(shape: Shape) -> str:
    low, high = shape.get("minimum"), shape.get("maximum")
    if low is not None and high is not None:
        return f"between {low:g} and {high:g}"
    bounds = [
        ("exclusiveMinimum", "above"),
        ("minimum", "of at least"),
        ("exclusiveMaximum", "below"),
        ("maximum", "of at most"),
    ]
    return " and ".join(f"{word} {shape[key]:g}" for key, word in bounds if key in shape)


def _steps(shape: Shape, part: str | int, root: Shape) -> list[Shape]:
    shape = _resolved(shape, root)
    alternatives = [step for each in shape.get("anyOf", []) for step in _steps(each, part, root)]
    if isinstance(part, int):
        own = [*shape.get("prefixItems", [])[part : part + 1], shape.get("items")]
    else:
        own = [
            shape.get("properties", {}).get(part),
            *shape.get("patternProperties", {}).values(),
            shape.get("additionalProperties"),
        ]
        # One edge may stand for a list of one: its keys are those of the items.
        alternatives += _steps(shape["items"], part, root) if "items" in shape else []
    return [step for step in own if isinstance(step, dict)] + alternatives


def _resolved(shape: Shape, root: Shape) -> Shape:
    name = shape.get("$ref", "").rpartition("/")[2]
    beside = {key: value for key, value in shape.items() if key != "$ref"}
    return {**root.get("$defs", {}).get(name, {}), **beside}


def words_of(shape: Shape, root: Shape) -> str:
    """Return in words what a shape takes, for the documentation."""
    if "$ref" in shape:
        name = shape["$ref"].rpartition("/")[2]
        target = root.get("$defs", {}).get(name, {})
        return words_of(target, root)
    if "const" in shape or "enum" in shape:
        known = shape.get("enum", [shape.get("const")])
        return ", ".join(f"`{each}`" for each in known)
    if "anyOf" in shape:
        branches = [each for each in shape["anyOf"] if each.get("type") != "null"]
        return " or ".join(dict.fromkeys(words_of(each, root) for each in branches))
    noun = _WORDS.get(shape.get("type", ""), "anything")
    if noun == "list" and isinstance(shape.get("items"), dict) and shape["items"]:
        items = words_of(shape["items"], root)
        return f"list of {items.replace('number', 'numbers', 1)}"
    return " ".join(filter(None, [noun, _range(shape)]))


_WORDS = {
    "array": "list",
    "boolean": "true or false",
    "integer": "whole number",
    "number": "number",
    "object": "mapping",
    "string": "text",
}

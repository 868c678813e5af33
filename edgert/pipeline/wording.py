"""Faults of values in plain English, from what pydantic found."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from edgert.options import Refusal
from edgert.pipeline.marks import Mark
from edgert.pipeline.near import choices
from edgert.pipeline.shape import NUMBERS, Shape, range_of, types_of
from edgert.pipeline.spec import EDGE, EDGE_MEND, PIPELINE_NAME, STAGE_NAME
from edgert.redact import redact

Said = tuple[str, str]

_NOUNS = {
    "int": "a whole number",
    "float": "a number",
    "decimal": "a number",
    "bool": "true or false",
    "string": "text",
    "path": "a path",
    "list": "a list",
    "tuple": "a list",
    "set": "a list",
    "frozen_set": "a list",
    "iterable": "a list",
    "dict": "a mapping",
    "mapping": "a mapping",
    "model": "a mapping",
    "dataclass": "a mapping",
}
_ENDINGS = ("_type", "_parsing", "_parsing_size", "_from_float", "_attributes_type")
_NAME = "of a to z, 0 to 9 and '-'"
_PATTERNS = {
    EDGE: ("an edge", EDGE_MEND),
    PIPELINE_NAME: ("a name for a pipeline", f"Use 1 to 40 characters {_NAME}"),
    STAGE_NAME: (
        "a name that can be used here",
        f"Begin with a letter, then up to 39 more {_NAME} or '_'",
    ),
}


def noun_of(error_type: str) -> str:
    """Return what was expected where pydantic names a wrong type; empty for any other error."""
    for ending in _ENDINGS:
        if error_type.endswith(ending) and error_type.removesuffix(ending) in _NOUNS:
            return _NOUNS[error_type.removesuffix(ending)]
    return ""


def explain(error: Mapping[str, Any], shape: Shape, mark: Mark, key: str) -> Said:
    """Return the fault and the mend for one error of pydantic.

    Args:
        error: As pydantic reports it.
        shape: What is expected there.
        mark: Where the value stands, with its text as written.
        key: Its key, for the mend.
    """
    noun = noun_of(error["type"])
    if noun:
        return wrong_type(error["input"], noun, shape, mark, key)
    explainer = _EXPLAINERS.get(error["type"], _other)
    return explainer(error, shape, said(error["input"], mark))


def wrong_type(value: Any, noun: str, shape: Shape, mark: Mark, key: str) -> Said:
    """Return fault and mend of a value that is not what was expected."""
    if noun == "text" and isinstance(value, bool | int | float):
        text = mark.text if mark.text is not None else str(value)
        reads = str(value).lower() if isinstance(value, bool) else "a number"
        fault = f"YAML reads {text} as {reads}, but text is expected"
        return fault, f"Quote it: {key}: '{text}'"
    if value is None:
        return "it is empty", _type_mend(noun, shape)
    return f"{said(value, mark)} is not {noun}", _type_mend(noun, shape)


def neither(value: Any, nouns: list[str], mark: Mark) -> Said:
    """Return fault and mend of a value that is none of several things."""
    names = list(dict.fromkeys(nouns))
    return f"{said(value, mark)} does not fit", f"Give {' or '.join(names)}"


def said(value: Any, mark: Mark) -> str:
    """Return how a value is called in a fault."""
    if isinstance(value, dict):
        return "a mapping" if value else "an empty mapping"
    if isinstance(value, list | tuple):
        return "a list" if value else "an empty list"
    if value is None:
        return "nothing"
    text = mark.text if mark.text is not None else str(value)
    text = redact(text)  # before it is cut: half a URL does not look like one
    shown = text if len(text) <= 60 else f"{text[:60]}..."
    shown = shown.encode("unicode_escape").decode("ascii") if not shown.isprintable() else shown
    if isinstance(value, bool) and text.lower() not in {"true", "false"}:
        return f"'{shown}' (YAML reads it as {str(value).lower()})"
    return f"'{shown}'"


def _type_mend(noun: str, shape: Shape) -> str:
    keys = list(shape.get("properties", {}))
    if noun == "a mapping" and keys:
        return f"Write a mapping with the keys: {', '.join(keys)}"
    within = range_of(shape) if "number" in noun else ""
    return f"Give {noun} {within}".rstrip()


def _range(error: Mapping[str, Any], shape: Shape, value: str) -> Said:
    size = "small" if error["type"].startswith("greater") else "large"
    noun = "whole number" if types_of(shape) & NUMBERS == {"integer"} else "number"
    within = range_of(shape)
    if within:
        return f"{value} is too {size}", f"Give a {noun} {within}"
    bound = str(error["msg"]).removeprefix("Input should be ")  # of one way to write a key
    return f"{value} is too {size}", f"Give a {noun} {bound}"


def _choice(error: Mapping[str, Any], shape: Shape, value: str) -> Said:
    known = shape.get("enum") or [shape["const"]] if "const" in shape else shape.get("enum")
    known = known or re.findall("'([^']+)'", error["ctx"]["expected"])  # of an optional key
    if len(known) == 1:
        return f"{value} is not {known[0]}", f"Write {known[0]}"
    written = str(error["input"])
    return f"{value} is not among the choices", choices(written, map(str, known), "Choices")


def _pattern(error: Mapping[str, Any], _shape: Shape, value: str) -> Said:
    pattern = error["ctx"]["pattern"]
    thing, mend = _PATTERNS.get(pattern, ("of the right form", f"It must match {pattern}"))
    return f"{value} is not {thing}", mend


def _length(error: Mapping[str, Any], _shape: Shape, value: str) -> Said:
    context = error["ctx"]
    if error["type"] == "string_too_short" and context["min_length"] == 1:
        return "it is empty", "Give text"
    if "min_length" in context:
        return f"{value} is too short", f"Give at least {context['min_length']}"
    return f"{value} is too long", f"Give at most {context['max_length']}"


def _raised(error: Mapping[str, Any], _shape: Shape, _value: str) -> Said:
    """Explain what a validator raised: a refusal in two parts, or ``fault. mend``."""
    raised = error["ctx"]["error"]
    if isinstance(raised, Refusal):
        return raised.fault, raised.mend
    fault, _, mend = str(raised).partition(". ")
    return fault or "the value is refused", mend


def _other(error: Mapping[str, Any], _shape: Shape, value: str) -> Said:
    message = str(error["msg"])
    return f"{value} is refused: {message[:1].lower()}{message[1:]}", ""


_EXPLAINERS: dict[str, Callable[[Mapping[str, Any], Shape, str], Said]] = {
    "greater_than": _range,
    "greater_than_equal": _range,
    "less_than": _range,
    "less_than_equal": _range,
    "literal_error": _choice,
    "enum": _choice,
    "string_pattern_mismatch": _pattern,
    "too_short": _length,
    "too_long": _length,
    "string_too_short": _length,
    "string_too_long": _length,
    "value_error": _raised,
    "assertion_error": _raised,
}

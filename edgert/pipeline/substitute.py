"""``${NAME, default}`` in the text of a pipeline file."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from edgert.errors import Fault
from edgert.pipeline.marks import Loc, Marks
from edgert.pipeline.yamltext import plain_value

INPUT = "EDGERT_INPUT"
OUTPUT = "EDGERT_OUTPUT"
_OPTION = {INPUT: "--input", OUTPUT: "--output"}
# "$${" stands for a plain "${"; "${" that opens nothing sensible is caught by the last branch.
_USE = re.compile(
    r"\$\$\{|\$\{\s*(?P<name>[A-Za-z_][A-Za-z0-9_]*)\s*(?:,(?P<default>[^{}]*))?\}|\$\{"
)
_SCHEME = re.compile(r"^[A-Za-z][A-Za-z0-9+.-]+:")


class _Unresolved(ValueError):  # noqa: N818  told as a fault, never raised to a caller
    def __init__(self, fault: str, mend: str) -> None:
        super().__init__(fault)
        self.fault = fault
        self.mend = mend


def command_line_variables(input_: str | None, output: str | None) -> dict[str, str]:
    """Return the variables that ``--input`` and ``--output`` set.

    Paths on the command line start from the current folder, those in a file from the file's: so
    they are made absolute here. Addresses (``rtsp://...``, ``sample:...``) and ``-`` stay.
    """
    given = {INPUT: input_, OUTPUT: output}
    return {name: _from_here(value) for name, value in given.items() if value is not None}


def _from_here(value: str) -> str:
    if value in {"", "-"} or _SCHEME.match(value):
        return value
    return str(Path.cwd() / value)


def unused_options(value: Any, variables: Mapping[str, str], file: str) -> list[Fault]:
    """Return a warning for each option that sets a variable which nothing in a file reads.

    Args:
        value: Plain value of a whole file, before any substitution.
        variables: What the command line set.
        file: The file.
    """
    used = set(_names(value))
    return [
        Fault(
            f"{option} ({name})",
            "nothing in the file reads it, so it changes nothing",
            f"Write ${{{name}, default}} where it is meant, or use --set",
            file,
        )
        for name, option in _OPTION.items()
        if name in variables and name not in used
    ]


def _names(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield from (use["name"] for use in _USE.finditer(value))
    elif isinstance(value, dict | list):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _names(item)


def substitute(value: Any, marks: Marks, variables: Mapping[str, str]) -> tuple[Any, list[Fault]]:
    """Return a value with every substitution made, and the faults of those that cannot be.

    A scalar that is one substitution as a whole is read as YAML reads plain text (``2`` is a
    number) and marked loose; part of a longer text stays text.

    Args:
        value: Plain value of a whole file.
        marks: Where its parts stand; scalars that are changed get a new mark.
        variables: The variables.
    """
    faults: list[Fault] = []
    return _walk(value, (), marks, variables, faults), faults


def _walk(
    value: Any, loc: Loc, marks: Marks, variables: Mapping[str, str], faults: list[Fault]
) -> Any:
    if isinstance(value, dict):
        return {
            key: _walk(item, (*loc, key), marks, variables, faults) for key, item in value.items()
        }
    if isinstance(value, list):
        return [
            _walk(item, (*loc, index), marks, variables, faults) for index, item in enumerate(value)
        ]
    if isinstance(value, str) and "\0" in value:
        faults.append(marks.fault(loc, "it has a NUL character in it", "Take it out"))
    if not isinstance(value, str) or "${" not in value:
        return value
    try:
        return _scalar(value, loc, marks, variables)
    except _Unresolved as error:
        faults.append(marks.fault(loc, error.fault, error.mend))
        return value


def _scalar(text: str, loc: Loc, marks: Marks, variables: Mapping[str, str]) -> Any:
    result = _USE.sub(lambda use: _resolve(use, variables), text)
    whole = _USE.fullmatch(text)
    if whole is None or whole["name"] is None:
        return result
    marks.table[loc] = replace(marks.nearest(loc), text=result, is_loose=True)
    try:
        # An empty variable is empty text, not YAML's null.
        return plain_value(result) if result else result
    except ValueError:
        return result


def _resolve(use: re.Match[str], variables: Mapping[str, str]) -> str:
    if use.group() == "$${":
        return "${"
    name, default = use["name"], use["default"]
    if name is None:
        raise _Unresolved(
            "'${' opens no substitution",
            "Write ${NAME} or ${NAME, default}; or $${ where a plain ${ is meant",
        )
    if name in variables:
        return variables[name]
    if default is not None:
        return default.strip()
    option = f" or give {_OPTION[name]}" if name in _OPTION else ""
    raise _Unresolved(
        f"the variable {name} is not set and has no default",
        f"Set it{option}, or write ${{{name}, default}}",
    )

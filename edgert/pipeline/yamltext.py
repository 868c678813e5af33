"""YAML text -> a tree of nodes with marks, within limits of size, depth and number."""

from __future__ import annotations

from typing import Any

import yaml
from yaml.nodes import Node, ScalarNode
from yaml.reader import ReaderError

from edgert.errors import Fault, PipelineError
from edgert.pipeline.invisible import find_invisible, line_column

MAX_BYTES = 1 << 20
MAX_NODES = 20_000
MAX_DEPTH = 32

_MEND = "Check the indentation, brackets and quotes up to here"
_MENDS = {
    "'\\t'": "Indent with spaces, not with tabs",
    "mapping values are not allowed": "Quote a value that holds ': '",
    "'@'": "Quote a value that begins with '@'",
    "'`'": "Quote a value that begins with '`'",
    "'%'": "Quote a value that begins with '%'",
    "undefined alias": "Quote a value that begins with '*'",
    "alphabetic or numeric character": "Quote a value that begins with '*' or '&'",
    "levels": "Nest less deeply",
    "values": "Write less into one file",
    "single document": "Keep one document in a file, without '---' between",
}


class _LimitError(yaml.MarkedYAMLError):
    """A limit of ours was passed."""


class _Loader(yaml.SafeLoader):
    """Composes nodes and counts them. Pure Python: its messages are the same everywhere."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self._nodes = 0
        self._depth = 0

    def compose_node(self, parent: Node | None, index: Any) -> Node | None:
        """Compose one node and what is in it.

        Raises:
            _LimitError: There are too many, or too deep.
        """
        self._nodes += 1
        self._depth += 1
        if self._nodes > MAX_NODES or self._depth > MAX_DEPTH:
            what = "values" if self._nodes > MAX_NODES else "levels"
            limit = MAX_NODES if self._nodes > MAX_NODES else MAX_DEPTH
            raise _LimitError(
                problem=f"there are more than {limit} {what}",
                problem_mark=self.get_mark(),
            )
        node = super().compose_node(parent, index)
        self._depth -= 1
        return node


def compose(text: str, file: str) -> Node | None:
    """Return the root node of YAML text; None where the text is empty.

    Args:
        text: The YAML.
        file: Name of the file for faults.

    Raises:
        PipelineError: It is not YAML, or passes a limit.
    """
    try:
        node = _Loader(text).get_single_node()
    except ReaderError as error:
        raise PipelineError([_unreadable(error, text, file)]) from None
    except yaml.MarkedYAMLError as error:
        raise PipelineError([_unseen(error, text, file) or _malformed(error, text, file)]) from None
    unseen = find_invisible(text, file, len(text))
    if unseen is not None:  # what follows from it need not be told
        raise PipelineError([unseen])
    return node


def decode(data: bytes, file: str) -> str:
    """Return the text of a file.

    Raises:
        PipelineError: It is too long or not UTF-8.
    """
    if len(data) > MAX_BYTES:
        raise PipelineError(
            [Fault("the file", f"it is larger than {MAX_BYTES} bytes", "Make it smaller", file)]
        )
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        before = data[: error.start].decode("utf-8", "replace")
        line, column = line_column(before)
        fault = f"byte 0x{data[error.start]:02x} is not UTF-8"
        raise PipelineError(
            [Fault("the file", fault, "Save the file as UTF-8 text", file, line, column)]
        ) from None


def plain_value(text: str) -> bool | int | float | str | None:
    """Return what YAML reads a plain scalar as; text where it is no boolean, number or null.

    Raises:
        ValueError: It looks like a number and is none.
    """
    tag = _RESOLVER.resolve(ScalarNode, text, (True, False))  # type: ignore[no-untyped-call]
    return scalar_value(str(tag), text)


def scalar_value(tag: str, text: str) -> bool | int | float | str | None:
    """Return the value of a scalar by its tag.

    Dates and sexagesimal numbers (``1:30``) stay text: nobody means them in a pipeline file.

    Raises:
        ValueError: The text does not fit the tag.
    """
    node = ScalarNode(tag, text)
    kind = tag.rpartition(":")[2]
    if kind == "null":
        return None
    if kind == "bool":
        return _boolean(text)
    if kind == "int" and ":" not in text:
        return int(_CONSTRUCTOR.construct_yaml_int(node)) if text else _no_number(text)
    if kind == "float" and ":" not in text:
        return float(_CONSTRUCTOR.construct_yaml_float(node)) if text else _no_number(text)
    return text


def _boolean(text: str) -> bool:
    value = yaml.SafeLoader.bool_values.get(text.lower())
    if value is None:
        raise ValueError(f"'{text}' is not true or false")
    return value


def _no_number(text: str) -> int:
    raise ValueError(f"'{text}' is not a number")


def _unseen(error: yaml.MarkedYAMLError, text: str, file: str) -> Fault | None:
    """Return what cannot be seen up to the end of the line on which YAML was at a loss."""
    mark = error.problem_mark
    if mark is None:
        return None
    end = text.find("\n", mark.index)
    return find_invisible(text, file, len(text) if end < 0 else end)


def _malformed(error: yaml.MarkedYAMLError, text: str, file: str) -> Fault:
    mark = error.problem_mark or error.context_mark
    line, column = (mark.line, mark.column) if mark else (0, 0)
    problem = " ".join((error.problem or error.context or "it is not YAML").split())
    if isinstance(error, yaml.composer.ComposerError) and error.context and "but found" in problem:
        problem = f"{error.context} {problem}"
    mend = _mend(problem, text, line)
    if "<stream end>" in problem and error.context_mark:
        mend = f"Close what is opened on line {error.context_mark.line + 1}"
    return Fault("YAML", problem, mend, file, line + 1, column + 1)


def _mend(problem: str, text: str, line: int) -> str:
    lines = text.splitlines()
    if line < len(lines) and "${" in lines[line]:
        return 'Quote the substitution: "${NAME, default}"'
    return next((mend for sign, mend in _MENDS.items() if sign in problem), _MEND)


def _unreadable(error: ReaderError, text: str, file: str) -> Fault:
    line, column = line_column(text[: error.position])
    code = error.character if isinstance(error.character, int) else ord(text[error.position])
    fault = f"character U+{code:04X} is not allowed in YAML"
    return Fault("YAML", fault, "Remove it", file, line, column)


_RESOLVER = yaml.resolver.Resolver()
_CONSTRUCTOR = yaml.constructor.SafeConstructor()

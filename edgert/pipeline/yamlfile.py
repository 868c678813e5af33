"""A YAML file -> its plain values, where each of them stands, and what was wrong on the way."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from edgert.errors import Fault, PipelineError
from edgert.pipeline.construct import Constructor
from edgert.pipeline.marks import Marks
from edgert.pipeline.yamltext import MAX_BYTES, compose, decode
from edgert.regular import NOT_REGULAR, open_regular


@dataclass(frozen=True, slots=True)
class YamlFile:
    """What stands in a file.

    Attributes:
        value: Plain values; what was at fault is left out.
        marks: Where each value stands.
        faults: What was wrong.
    """

    value: Any
    marks: Marks
    faults: tuple[Fault, ...]


def read_yaml(path: Path, what: str) -> YamlFile:
    """Read a file of YAML.

    Args:
        path: The file.
        what: What is wanted, for faults: ``pipeline``.

    Raises:
        PipelineError: Nothing can be made of it; what is known of it is in it.
    """
    file = str(path)
    constructor = Constructor(file)
    node = compose(decode(_bytes(path, what), file), file)
    if node is None:
        raise PipelineError([Fault("the file", "it is empty", f"Write a {what}", file, 1, 1)])
    value = constructor.construct(node)
    return YamlFile(value, constructor.marks, tuple(constructor.faults))


def _bytes(path: Path, what: str) -> bytes:
    try:
        with open_regular(path) as file:
            return file.read(MAX_BYTES + 1)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        mend = f"Write the {what} to a file" if reason == NOT_REGULAR else f"Give a {what} file"
        fault = f"it cannot be read: {reason}"
        raise PipelineError([Fault("the file", fault, mend, str(path))]) from None

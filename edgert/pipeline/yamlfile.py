"""A YAML file -> its plain values, where each of them stands, and what was wrong on the way."""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from edgert.errors import Fault, PipelineError
from edgert.pipeline.construct import Constructor
from edgert.pipeline.marks import Marks
from edgert.pipeline.yamltext import MAX_BYTES, compose, decode


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
        with open(path, "rb", opener=_open_at_once) as file:  # noqa: PTH123  for its opener
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise _fault(path, "it is a pipe or a device", f"Write the {what} to a file")
            return file.read(MAX_BYTES + 1)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise _fault(path, f"it cannot be read: {reason}", f"Give a {what} file") from None


def _open_at_once(path: str, flags: int) -> int:
    """Open a file; a FIFO that nobody writes to does not hold us up."""
    return os.open(path, flags | os.O_NONBLOCK)


def _fault(path: Path, fault: str, mend: str) -> PipelineError:
    return PipelineError([Fault("the file", fault, mend, str(path))])

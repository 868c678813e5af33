"""The variables of a service, as systemd reads them from its file (``EnvironmentFile=``)."""

from __future__ import annotations

import re
import shlex

from edgert.errors import ResourceError
from edgert.service.layout import Layout

_ASSIGNMENT = re.compile(r"\s*([A-Za-z_][A-Za-z0-9_]*)=(.*)")


def variables_of(layout: Layout, name: str) -> dict[str, str]:
    """Return the variables of a service; none where it has no file of them yet.

    Raises:
        ResourceError: The file cannot be read.
    """
    file = layout.environment(name)
    try:
        return parse(file.read_text())
    except FileNotFoundError:
        return {}
    except OSError as error:
        fault = f"cannot be read ({error.strerror})"
        raise ResourceError(f"file '{file}'", fault, "Run it as root") from error


def parse(text: str) -> dict[str, str]:
    """Return the variables of a text: ``NAME=value`` a line, quotes taken off, no comments."""
    lines = text.replace("\\\n", "").splitlines()
    found = (_ASSIGNMENT.fullmatch(line) for line in lines)
    return {each[1]: _unquoted(each[2].strip()) for each in found if each}


def _unquoted(value: str) -> str:
    try:
        return "".join(shlex.split(value)) if value[:1] in "\"'" else value
    except ValueError:  # a quote that does not end: systemd takes the line as it is, too
        return value

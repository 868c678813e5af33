"""Characters that look like a space, or like nothing, where YAML takes them for text.

They come from web pages and word processors. In comments, in quotes and within a text they may
stay: some file names have them.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from typing import NamedTuple

import yaml

from edgert.errors import Fault
from edgert.wording import counted

_BLANKS = "\u00a0\u1680\u2000-\u200a\u202f\u205f\u2800\u3000"
_NEVER_MEANT = "\u00ad\u180e\u200b\u2060-\u2064\ufeff"
_NOTHING = f"{_NEVER_MEANT}\u200c-\u200f\u202a-\u202e\u2066-\u2069\u3164"
_ANY = re.compile(f"[{_BLANKS}{_NOTHING}]")
_A_BLANK = re.compile(f"[{_BLANKS}]")
# Where a line of a text begins or ends, and behind what would be '- ' or ': ' with a space.
_MISPLACED = re.compile(
    f"(?:^[ \\t]*-?|:)(?P<first>{_ANY.pattern})|(?P<last>{_ANY.pattern})[ \\t]*$"
    f"|(?P<within>[{_NEVER_MEANT}])",
    re.MULTILINE,
)


class _Spot(NamedTuple):
    """Where one stands: its index in the text, and whether that is in a key."""

    at: int
    is_key: bool


def find_invisible(text: str, file: str, until: int) -> Fault | None:
    """Return the first that harms as a fault; None without any.

    Args:
        text: The YAML.
        file: Name of the file for faults.
        until: Index in the text of what is not looked at any more.
    """
    if _ANY.search(text, 0, until) is None:
        return None
    spot = next(_spots(text, until), None)
    return None if spot is None else _told(spot, text, file)


def line_column(before: str) -> tuple[int, int]:
    """Return line and column, from 1, of what follows a text."""
    return before.count("\n") + 1, len(before) - (before.rfind("\n") + 1) + 1


def _told(spot: _Spot, text: str, file: str) -> Fault:
    line, column = line_column(text[: spot.at])
    character = text[spot.at]
    name = unicodedata.name(character, "without a name").lower()
    if _A_BLANK.match(character):
        seen, mend = "looks like a space and is none", "Write a space instead"
    else:
        seen, mend = "cannot be seen", "Remove it"
    meant = "" if spot.is_key else ", or quote the text it belongs to"
    others = sum(character in each for each in text.split("\n")) - 1
    has = "has" if others == 1 else "have"
    also = f"; {counted(others, 'other line')} {has} it, too" if others else ""
    fault = f"U+{ord(character):04X} ({name}) {seen}"
    return Fault("YAML", fault, f"{mend}{meant}{also}", file, line, column)


def _spots(text: str, until: int) -> Iterator[_Spot]:
    is_key = False
    for token in _tokens(text):
        begin, end = token.start_mark.index, token.end_mark.index
        if begin >= until:
            return
        if isinstance(token, yaml.ScalarToken) and token.plain:
            pattern = _ANY if is_key else _MISPLACED
            for found in pattern.finditer(text[begin:end]):
                yield _Spot(begin + found.start(found.lastgroup or 0), is_key)
        is_key = isinstance(token, yaml.KeyToken)


def _tokens(text: str) -> Iterator[yaml.Token]:
    scanner = yaml.SafeLoader(text)
    try:
        while scanner.check_token():
            yield scanner.get_token()  # type: ignore[no-untyped-call]
    except yaml.MarkedYAMLError:
        yield from scanner.tokens  # what was read before the fault

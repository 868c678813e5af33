"""Where each value of a pipeline file stands, and how its place is called in a fault."""

from __future__ import annotations

from dataclasses import dataclass, field

from edgert.errors import Fault

Loc = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class Mark:
    """Where one value stands.

    Attributes:
        line: Line from 1, of the value itself if it is a scalar, else of its key.
        column: Column from 1.
        key_line: Line of its key.
        key_column: Column of its key.
        text: A scalar as it was written, for example ``off``.
        is_loose: The value came by substitution or ``--set``, so that ``12`` may be meant as text.
        setting: The ``--set`` text that it came by.
    """

    line: int
    column: int
    key_line: int
    key_column: int
    text: str | None = None
    is_loose: bool = False
    setting: str = ""


@dataclass(slots=True)
class Marks:
    """The marks of one file by key path."""

    file: str
    table: dict[Loc, Mark] = field(default_factory=dict)

    def nearest(self, loc: Loc) -> Mark:
        """Return the mark of a key path, or of its nearest ancestor that stands in the file."""
        for length in range(len(loc), 0, -1):
            mark = self.table.get(loc[:length])
            if mark is not None:
                return mark
        return self.table.get((), Mark(1, 1, 1, 1))

    def fault(
        self, loc: Loc, fault: str, mend: str = "", *, place: str = "", at_key: bool = False
    ) -> Fault:
        """Return a fault with the line and column of a key path.

        Args:
            loc: The key path, from the root of the file.
            fault: What is wrong.
            mend: What to do about it.
            place: How the place is called; made from ``loc`` where it is empty.
            at_key: Point at the key instead of the value.
        """
        place = place or place_of(loc)
        mark = self.nearest(loc)
        if mark.setting:
            return Fault(place, fault, mend, f"--set {mark.setting}")
        if at_key:
            return Fault(place, fault, mend, self.file, mark.key_line, mark.key_column)
        return Fault(place, fault, mend, self.file, mark.line, mark.column)

    def forget(self, loc: Loc) -> None:
        """Drop the marks of a value and of everything in it."""
        for known in [known for known in self.table if known[: len(loc)] == loc]:
            del self.table[known]


def place_of(loc: Loc) -> str:
    """Return how a key path is called: ``stage 'infer', input 'tensor'``."""
    if loc[:1] == ("stages",) and len(loc) > 1:
        return _place_in_stage(f"stage '{loc[1]}'", loc[2:])
    if loc[:1] in {("limits",), ("restart",)} and len(loc) > 1:
        return f"{loc[0]}, {_key(loc[1:])}"
    if loc[:1] == ("devices",) and len(loc) > 1:
        return ", ".join([f"device '{loc[1]}'", *([_key(loc[2:])] if loc[2:] else [])])
    return _key(loc) if loc else "the file"


def _place_in_stage(stage: str, loc: Loc) -> str:
    if loc[:1] != ("inputs",) or len(loc) == 1:
        return ", ".join([stage, *([_key(loc)] if loc else [])])
    deeper = loc[3:] if len(loc) > 2 and isinstance(loc[2], int) else loc[2:]
    return ", ".join([stage, f"input '{loc[1]}'", *([_key(deeper)] if deeper else [])])


def _key(loc: Loc) -> str:
    parts = [f"[{part}]" if isinstance(part, int) else f".{part}" for part in loc]
    return f"key '{''.join(parts).lstrip('.')}'"

"""Values -> an instance of a class, with every flaw told at its key path."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, TypeVar

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from edgert.errors import Fault
from edgert.options import Options
from edgert.pipeline.adapter import UNKNOWN, misfits, plain_of, read_as
from edgert.pipeline.marks import Loc, Marks
from edgert.pipeline.near import choices
from edgert.pipeline.shape import is_number, properties_of, shape_at, types_of
from edgert.pipeline.wording import explain, neither, noun_of, said, wrong_type
from edgert.version import __version__

Model = TypeVar("Model")

# The file format has a seat for these; the code does not do them yet.
LATER_KEYS = ("reconnect", "require")
_MOST = 2**63 - 1
_NOT_YET = f"is not supported by edgert {'.'.join(__version__.split('.')[:2])} yet"


@dataclass(frozen=True, slots=True)
class Flaw:
    """What is wrong at one key path.

    Attributes:
        loc: The key path from the root of the file.
        fault: What is wrong.
        mend: What to do.
        is_missing: The key is not there.
        is_unknown: The key should not be there.
    """

    loc: Loc
    fault: str
    mend: str
    is_missing: bool = False
    is_unknown: bool = False

    def told(self, marks: Marks) -> Fault:
        """Return the fault with its line and column."""
        if self.is_missing:
            return marks.fault(self.loc[:-1], self.fault, self.mend, at_key=True)
        return marks.fault(self.loc, self.fault, self.mend, at_key=self.is_unknown)


@dataclass(frozen=True, slots=True)
class Subject:
    """What is being validated.

    Attributes:
        value: The plain value.
        base: Key path of the value in the file.
        marks: The marks of the file.
        title: What it is, for faults of unknown keys: ``kind source.video``.
        also: Keys that may stand beside the model's own.
    """

    value: Any
    base: Loc
    marks: Marks
    title: str = ""
    also: tuple[str, ...] = ()


def validate(model: type[Model], subject: Subject) -> tuple[Model | None, list[Flaw]]:
    """Return what a value makes of a class, or every flaw that is in the way."""
    flaws = [*_booleans_for_numbers(model, subject)]
    try:
        made = _lenient(model, subject)
    except ValidationError as error:
        known = {flaw.loc for flaw in flaws}
        found = _flaws(model, subject, error)
        return None, flaws + [flaw for flaw in found if flaw.loc not in known]
    if isinstance(made, Options):
        flaws += [*_misfits(made, subject)] or _beyond_64_bits(made, subject)
    return (None if flaws else made), flaws


def later_key(key: str) -> tuple[str, str] | None:
    """Return fault and mend of a key that a later version will know; None for any other."""
    return (f"'{key}' {_NOT_YET}", "Remove it") if key in LATER_KEYS else None


def _lenient(model: type[Model], subject: Subject) -> Model:
    """Validate; where text is expected and a loose number stands, take the number's text."""
    try:
        return read_as(model, subject.value)
    except ValidationError as error:
        texts = _loose_texts(subject, error)
        if not texts:
            raise
        value = copy.deepcopy(subject.value)
        for loc, text in texts.items():
            holder = value
            for part in loc[:-1]:
                holder = holder[part]
            holder[loc[-1]] = text
        return read_as(model, value)


def _loose_texts(subject: Subject, error: ValidationError) -> dict[Loc, str]:
    texts: dict[Loc, str] = {}
    for each in error.errors(include_url=False):
        loc = _loc_in_file(each["loc"], subject.value, keep_last=False)
        mark = subject.marks.table.get(subject.base + loc)
        if each["type"] != "string_type" or mark is None or mark.text is None:
            continue  # a list or a mapping has no text
        if mark.is_loose and loc:
            texts[loc] = mark.text
    return texts


def _flaws(model: type, subject: Subject, error: ValidationError) -> list[Flaw]:
    """Turn pydantic's errors into flaws; branches of one union become one flaw."""
    by_loc: dict[Loc, list[dict[str, Any]]] = {}
    for each in _first_causes(error.errors(include_url=False)):
        is_about_key = each["type"] == "missing" or each["type"] in UNKNOWN
        loc = _loc_in_file(each["loc"], subject.value, keep_last=is_about_key)
        by_loc.setdefault(loc, []).append(dict(each))
    return [_flaw(model, subject, loc, errors) for loc, errors in by_loc.items()]


def _first_causes(errors: list[ErrorDetails]) -> list[ErrorDetails]:
    """Leave out lists that are too short only because their items were refused."""
    above = {each["loc"][:end] for each in errors for end in range(len(each["loc"]))}
    return [each for each in errors if each["type"] != "too_short" or each["loc"] not in above]


def _flaw(model: type, subject: Subject, loc: Loc, errors: list[dict[str, Any]]) -> Flaw:
    error = errors[0]
    place = subject.base + loc
    if error["type"] == "missing":
        return _missing(model, loc, place)
    if error["type"] in UNKNOWN:
        # What stands for a list of one has the keys of the list's items.
        owners = (shape_at(model, loc[:-1]), shape_at(model, (*loc[:-1], 0)))
        return _unknown([key for shape in owners for key in properties_of(shape)], subject, loc)
    key = str(loc[-1]) if loc else ""
    mark = subject.marks.nearest(place)
    nouns = [noun_of(each["type"]) or _word_of(each) for each in errors]
    if len(errors) > 1 and all(nouns):
        return Flaw(place, *neither(error["input"], nouns, mark))
    worded = next((each for each, noun in zip(errors, nouns, strict=True) if not noun), error)
    fault, mend = explain(worded, shape_at(model, loc), mark, key)
    words = [word for word in map(_word_of, errors) if word and len(errors) > 1]
    return Flaw(place, fault, " or ".join([mend, *words]))


def _word_of(error: dict[str, Any]) -> str:
    """Return the words that a choice expects, as one of several alternatives: ``'auto'``."""
    return str(error["ctx"]["expected"]) if error["type"] == "literal_error" else ""


def _missing(model: type, loc: Loc, place: Loc) -> Flaw:
    if isinstance(loc[-1], int):
        return Flaw(place, f"value {loc[-1] + 1} of the list is missing", "Add it", is_missing=True)
    key = str(loc[-1])
    description = shape_at(model, loc).get("description", "")
    mend = f"Add '{key}': {description}" if description else f"Add '{key}'"
    return Flaw(place, f"the key '{key}' is missing", mend, is_missing=True)


def _unknown(own: list[str], subject: Subject, loc: Loc) -> Flaw:
    key = str(loc[-1])
    later = later_key(key)
    if later:
        return Flaw(subject.base + loc, *later, is_unknown=True)
    owner = subject.title if subject.title and len(loc) == 1 else "it"
    keys = [*own, *(subject.also if len(loc) == 1 else ())]
    fault = f"there is no key '{key}'" if owner == "it" else f"{owner} has no key '{key}'"
    mend = choices(key, keys, "Keys")
    return Flaw(subject.base + loc, fault, mend, is_unknown=True)


def _booleans_for_numbers(model: type, subject: Subject) -> Iterator[Flaw]:
    """Find booleans where a number is expected: pydantic would take ``yes`` for 1."""
    for loc, value in _leaves(subject.value):
        if isinstance(value, bool):
            shape = shape_at(model, loc)
            if is_number(shape):
                place = subject.base + loc
                mark = subject.marks.nearest(place)
                noun = "a whole number" if "integer" in types_of(shape) else "a number"
                yield Flaw(place, *wrong_type(value, noun, shape, mark, str(loc[-1])))


def _misfits(made: Options, subject: Subject) -> Iterator[Flaw]:
    """Find what would reach a worker as something else: ``.nan``, or a type of a kind's own."""
    for key in misfits(made, subject.value):
        fault = "it has a value that no worker can be given"
        mend = "Give finite numbers; a kind declares its options as edgert.options.Options says"
        yield Flaw((*subject.base, key), fault, mend)


def _beyond_64_bits(made: Options, subject: Subject) -> Iterator[Flaw]:
    """Find whole numbers that no message to a worker takes, and no library would."""
    for loc, value in _leaves(plain_of(made, subject.value)):
        if isinstance(value, int) and not -_MOST <= value <= _MOST:
            place = subject.base + loc
            size = "large" if value > 0 else "small"
            fault = f"{said(value, subject.marks.nearest(place))} is too {size}"
            yield Flaw(place, fault, f"Give a whole number between {-_MOST} and {_MOST}")


def _leaves(value: Any, loc: Loc = ()) -> Iterator[tuple[Loc, Any]]:
    if isinstance(value, dict):
        for key, item in value.items():
            yield from _leaves(item, (*loc, key))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _leaves(item, (*loc, index))
    else:
        yield loc, value


def _loc_in_file(loc: Loc, value: Any, *, keep_last: bool) -> Loc:
    """Return the part of pydantic's path that stands in the file: no unions, no made-up lists."""
    found: list[str | int] = []
    here = value
    for part in loc[:-1] if keep_last else loc:
        is_key = isinstance(here, dict) and part in here
        is_index = isinstance(here, list) and isinstance(part, int) and part < len(here)
        if is_key or is_index:
            found.append(part)
            here = here[part]
    return (*found, loc[-1]) if keep_last else tuple(found)

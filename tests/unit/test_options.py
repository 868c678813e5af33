"""Options of stages: what a file says, checked by pydantic, is the same in a worker without it."""

from __future__ import annotations

import datetime as dt
import subprocess
import sys
from enum import Enum
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import Field, ValidationError

from edgert.options import Before, Number, Options, Pixels, Refusal, keys_of, option, restore
from edgert.pipeline.adapter import misfits, plain_of, read_as
from edgert.stages.registry import BUILT_IN, Registry


class Colour(Enum):
    RED = "red"
    BLUE = "blue"


class Inner(Options):
    size: Pixels = option(default=3, description="A size.")
    near: Number = 0.5


class Outer(Options):
    name: str = option(min_length=1, description="A name.")
    feeds: str | None = option(default=None, alias="for", description="Another's name.")
    inner: Annotated[Inner, Before(lambda value: {} if value == "off" else value)] = Inner()
    perhaps: Inner | None = None
    pair: tuple[Pixels, Pixels] | None = None
    points: tuple[tuple[float, float], ...] = ()
    region: tuple[float, float] | tuple[tuple[int, int], ...] | None = None
    sets: dict[str, frozenset[Colour] | None] = option(default={}, description="Some sets.")
    parts: list[Inner] = option(default=[], description="Several.")
    many: list[int] = option(default=[1], description="Some.")
    some: dict[str, Any] = option(default={}, description="Anything.")
    folder: Path = Path()
    colour: Colour | None = None
    mode: Literal["a", "b"] | int = "a"

    def check(self, given: frozenset[str]) -> None:
        if "for" in given and self.name == self.feeds:
            raise Refusal("it feeds itself", "Name another")


inners = st.fixed_dictionaries(
    {}, optional={"size": st.integers(1, 16384), "near": st.floats(-9, 9)}
)
outers = st.fixed_dictionaries(
    {"name": st.text(min_size=1)},
    optional={
        "for": st.just("another name than any"),
        "inner": inners | st.just("off"),
        "perhaps": inners | st.none(),
        "pair": st.lists(st.integers(1, 99), min_size=2, max_size=2),
        "points": st.lists(st.lists(st.floats(-9, 9), min_size=2, max_size=2)),
        "region": st.lists(st.floats(0.5, 0.7), min_size=2, max_size=2)
        | st.lists(st.lists(st.integers(0, 9), min_size=2, max_size=2), min_size=3),
        "sets": st.dictionaries(st.text(), st.none() | st.lists(st.sampled_from(["red", "blue"]))),
        "parts": st.lists(inners, max_size=2),
        "many": st.lists(st.integers(0, 9)),
        "some": st.dictionaries(st.text(), st.integers(0, 9) | st.lists(st.integers(0, 9))),
        "folder": st.sampled_from(["a", "a/b"]),
        "colour": st.sampled_from(["red", "blue"]) | st.none(),
        "mode": st.sampled_from(["a", "b", 7]),
    },
)


@given(outers)
def test_a_worker_has_the_options_that_were_checked(written: dict[str, Any]) -> None:
    made = read_as(Outer, written)
    sent = msgspec.msgpack.decode(msgspec.msgpack.encode(plain_of(made, written)))
    assert sent.keys() == written.keys()
    there = restore(Outer, sent)
    assert there == made
    assert not misfits(made, written)


@pytest.mark.parametrize("kind", BUILT_IN)
def test_options_of_a_built_in_kind_come_whole_by_default(kind: str) -> None:
    options = Registry({}).contract(kind).options
    keys = {"uri": "a.mp4", "model": "m", "path": "p", "for": "x", "address": "ipc:///a"}
    written = {key: value for key, value in keys.items() if key in keys_of(options)}
    if "for" in written:
        written.pop("model", None)
    made = read_as(options, written)
    assert restore(options, plain_of(made, written)) == made


@pytest.mark.parametrize(
    ("written", "where", "why"),
    [
        ({}, ("name",), "missing"),
        ({"name": ""}, ("name",), "string_too_short"),
        ({"name": "a", "nmae": "b"}, ("nmae",), "unexpected_keyword_argument"),
        ({"name": "a", "for": "a"}, (), "value_error"),
        ({"name": "a", "inner": {"size": 0}}, ("inner", "size"), "greater_than_equal"),
        ({"name": "a", "perhaps": {"near": float("inf")}}, ("perhaps", "near"), "finite_number"),
        ({"name": "a", "perhaps": 3}, ("perhaps",), "dataclass_type"),
    ],
)
def test_what_is_refused(written: dict[str, Any], where: tuple[str, ...], why: str) -> None:
    with pytest.raises(ValidationError) as caught:
        read_as(Outer, written)
    assert [(each["loc"], each["type"]) for each in caught.value.errors()] == [(where, why)]


def test_defaults_that_can_change_are_not_shared() -> None:
    first, second = read_as(Outer, {"name": "a"}), restore(Outer, {"name": "b"})
    first.many.append(2)
    first.some["x"] = 1
    assert (second.many, second.some, read_as(Outer, {"name": "c"}).many) == ([1], {}, [1])


class Dated(Options):
    day: dt.date = dt.date(2026, 1, 1)
    anything: Any = 0
    number: float = 0


@pytest.mark.parametrize(
    ("written", "names"),
    [
        ({}, []),
        ({"anything": float("nan")}, ["anything"]),
        ({"number": float("inf")}, []),
        ({"day": "2026-02-03"}, ["day"]),
        ({"anything": dt.date(2026, 1, 2)}, ["anything"]),
        ({"anything": object()}, ["anything"]),
    ],
)
def test_what_a_worker_would_get_as_something_else(
    written: dict[str, Any], names: list[str]
) -> None:
    assert misfits(read_as(Dated, written), written) == names


def test_a_rule_that_there_is_not_and_a_field_of_pydantic_are_refused_at_once() -> None:
    with pytest.raises(TypeError, match="not gte"):
        option(default=1, gte=0)
    with pytest.raises(TypeError, match=r"Wrong.size: write edgert.options.option"):
        type("Wrong", (Options,), {"__annotations__": {"size": int}, "size": Field(3)})


_WITHOUT = """
import sys
from edgert.runtime import zygote
from edgert.stages.registry import BUILT_IN
zygote.import_shared_libraries(BUILT_IN)
print(sorted({name.partition(".")[0] for name in sys.modules} & {"pydantic", "pydantic_core"}))
"""


def test_what_workers_are_forked_from_has_no_pydantic() -> None:
    done = subprocess.run(
        [sys.executable, "-c", _WITHOUT], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout == "[]\n"

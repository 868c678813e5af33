from __future__ import annotations

from pathlib import Path

import pytest

from edgert.coverage.journal import Journal
from edgert.coverage.record import Case, Model


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))


CASE = Case(
    case="test_relu",
    operator="Relu",
    opset=14,
    dtype="f32",
    form="published",
    placement="device",
    numerics="equal",
    evidence="hardware",
)
MODEL = Model(
    model="m", sha256="0" * 64, placement="cpu", numerics="not-run", evidence="static-list"
)


def test_a_run_goes_on_with_what_another_left() -> None:
    with Journal(["a", 1]) as first:
        first.add("one", CASE)
        first.add("two", MODEL)
    with Journal(["a", 1]) as second:
        assert second.done == {"one": CASE, "two": MODEL}


def test_another_version_or_device_begins_anew() -> None:
    with Journal(["a", 1]) as first:
        first.add("one", CASE)
    with Journal(["a", 2]) as second:
        assert second.done == {}


def test_half_a_line_is_cut_off() -> None:
    with Journal("x") as journal:
        journal.add("one", CASE)
    with journal.path.open("ab") as file:
        file.write(b'{"key":"two","cas')
    with Journal("x") as journal:
        assert list(journal.done) == ["one"]
        journal.add("three", CASE)
    with Journal("x") as journal:
        assert list(journal.done) == ["one", "three"]


def test_what_is_forgotten_or_not_wanted_is_gone() -> None:
    with Journal("x") as journal:
        journal.add("one", CASE)
    with Journal("x", fresh=True) as journal:
        assert journal.done == {}
        journal.forget()
    assert not journal.path.exists()

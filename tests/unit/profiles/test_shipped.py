"""The profiles that come with edgert: every fact has a source, and every machine its profile."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator
from pydantic import BaseModel

from edgert.pipeline.yamlfile import read_yaml
from edgert.profiles.find import SHIPPED, known
from edgert.profiles.load import load_profile
from edgert.profiles.schema import schema
from edgert.profiles.spec import Choice, Fact, ProfileSpec

REPOSITORY = Path(__file__).parents[3]
FILES = sorted(SHIPPED.glob("*.yaml"))
NAMES = {
    *("generic-x86-64", "generic-aarch64", "intel-core-ultra", "raspberry-pi-5-coral"),
    *("rk3588", "imx93", "qcs6490", "emulated-npu"),
}


def parts(value: object) -> Iterator[BaseModel]:
    """Walk the tree of a profile."""
    if isinstance(value, BaseModel):
        yield value
        for name in type(value).model_fields:
            yield from parts(getattr(value, name))
    elif isinstance(value, dict):
        for each in value.values():
            yield from parts(each)
    elif isinstance(value, tuple):
        for each in value:
            yield from parts(each)


def name_of(file: Path) -> str:
    return file.stem


def test_there_are_eight() -> None:
    assert {file.stem for file in FILES} == NAMES == set(known())
    assert {file.name for file in (REPOSITORY / "device_profiles").glob("*.yaml")} == {
        f"{name}.yaml" for name in NAMES
    }


@pytest.mark.parametrize("file", FILES, ids=name_of)
def test_every_fact_has_a_source_that_is_dated_and_every_default_a_reason(file: Path) -> None:
    spec = load_profile(file).spec
    found = list(parts(spec))
    # What is no fact: the file itself, the documents, and choices of ours.
    for part in found:
        if isinstance(part, Fact):
            source = spec.sources[part.source]
            assert source.title
            assert source.url
            assert source.version
            assert dt.date.fromisoformat(source.as_of) <= dt.datetime.now(dt.UTC).date()
        elif isinstance(part, Choice):
            assert len(part.why) > 10
        else:
            assert type(part).__name__ in {"ProfileSpec", "Source", "Defaults"}
    assert any(isinstance(part, Fact) for part in found)


@pytest.mark.parametrize("file", FILES, ids=name_of)
def test_no_operator_stands_there_twice(file: Path) -> None:
    for accelerator in load_profile(file).spec.accelerators.values():
        for operators in accelerator.operators.values():
            assert len(set(operators.names)) == len(operators.names) > 20


@pytest.mark.parametrize("file", FILES, ids=name_of)
def test_the_schema_accepts_it(file: Path) -> None:
    Draft202012Validator(schema()).validate(read_yaml(file, "profile").value)


def test_the_schema_is_the_one_in_docs() -> None:
    Draft202012Validator.check_schema(schema())
    assert json.loads((REPOSITORY / "docs" / "device-profile.schema.json").read_text()) == schema()


def test_every_key_is_documented() -> None:
    page = (REPOSITORY / "docs" / "device-profiles.md").read_text()
    models = {type(part) for file in FILES for part in parts(load_profile(file).spec)}
    for model in models | {ProfileSpec}:
        for name, field in model.model_fields.items():
            assert field.description
            assert f"`{field.alias or name}`" in page


def test_the_emulated_one_is_never_picked() -> None:
    assert load_profile(SHIPPED / "emulated-npu.yaml").spec.match is None
    others = NAMES - {"emulated-npu"}
    assert all(load_profile(SHIPPED / f"{name}.yaml").spec.match for name in others)

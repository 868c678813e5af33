"""Every file of the corpus gets exactly the messages that stand beside it."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from jsonschema import Draft202012Validator
from kinds import corpus_kinds

from edgert.errors import PipelineError
from edgert.pipeline.check import check
from edgert.pipeline.load import load, read
from edgert.pipeline.schema import schema

CORPUS = Path(__file__).parents[2] / "corpus"
INVALID = sorted((CORPUS / "pipelines" / "invalid").glob("*.yaml"))
VALID = sorted((CORPUS / "pipelines" / "valid").glob("*.yaml"))
# What JSON schema cannot see: edges between stages, the same worker, a validator's own rule.
BEYOND_SCHEMA = {
    "class-no-module",
    "class-no-stage",
    "class-not-there",
    "cycle",
    "devices",
    "edge-twice",
    "join-of-strangers",
    "many-leaves",
    "no-sink",
    "no-source",
    "nul-escaped",
    "number-not-finite",
    "output-of-sink",
    "port-kinds",
    "self-loop",
    "stream-twice",
    "two-cycles",
    "two-on-standard-output",
    "unknown-output",
    "unknown-stage",
    "unreached",
    "unread-output",
    "unread-stage",
    "unset-variable",
    "substituted-wrong",
    "validator",
    "worker-cores",
    # The parser of the test resolves these away, or they are equal for it.
    "duplicate-keys",
    "duplicate-stage",
}
NOT_DATA = (yaml.YAMLError, UnicodeDecodeError, ValueError, RecursionError)


def name_of(file: Path) -> str:
    return file.stem


def messages(file: Path) -> str:
    try:
        faults = check(read(file, {}), corpus_kinds()).faults
    except PipelineError as error:
        faults = error.faults
    return "".join(f"{fault}\n" for fault in faults)


@pytest.mark.parametrize("file", INVALID, ids=name_of)
def test_an_invalid_file_gets_its_expected_messages(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(file.parent)
    expected = file.with_suffix(".expected").read_text(encoding="utf-8")
    assert messages(Path(file.name)) == expected
    assert expected


@pytest.mark.parametrize("file", VALID, ids=name_of)
def test_a_valid_file_has_no_fault(file: Path) -> None:
    checked = check(load(file, {}), corpus_kinds())
    assert checked.faults == ()
    assert set(checked.options) == set(checked.contracts)


@pytest.fixture(scope="module")
def validator() -> Draft202012Validator:
    whole = schema(corpus_kinds())
    Draft202012Validator.check_schema(whole)
    return Draft202012Validator(whole)


@pytest.mark.parametrize("file", VALID, ids=name_of)
def test_the_schema_accepts_a_valid_file(file: Path, validator: Draft202012Validator) -> None:
    validator.validate(yaml.safe_load(file.read_text(encoding="utf-8")))


@pytest.mark.parametrize("file", INVALID, ids=name_of)
def test_the_schema_refuses_an_invalid_file(file: Path, validator: Draft202012Validator) -> None:
    try:
        value = yaml.safe_load(file.read_text(encoding="utf-8"))
    except NOT_DATA:
        return  # an editor tells that by itself
    if file.stem in {"billion-laughs", "endless-alias"}:
        return  # nothing that a plain validator should be given
    assert validator.is_valid(value) == (file.stem in BEYOND_SCHEMA)

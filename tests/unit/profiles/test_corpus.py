"""Every file of the corpus of profiles gets exactly the messages that stand beside it."""

from __future__ import annotations

from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from edgert.errors import PipelineError
from edgert.pipeline.yamlfile import read_yaml
from edgert.profiles.load import load_profile
from edgert.profiles.schema import schema

CORPUS = Path(__file__).parents[2] / "corpus" / "profiles"
INVALID = sorted((CORPUS / "invalid").glob("*.yaml"))
VALID = sorted((CORPUS / "valid").glob("*.yaml"))
# What JSON schema cannot see: one value against another, names of edgert's, the file's own name.
BEYOND_SCHEMA = {
    "both-classes",
    "duplicate",
    "no-rule",
    "no-such-source",
    "other-name",
    "unknown-kinds",
}


def name_of(file: Path) -> str:
    return file.stem


@pytest.mark.parametrize("file", INVALID, ids=name_of)
def test_an_invalid_file_gets_its_expected_messages(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(file.parent)
    with pytest.raises(PipelineError) as caught:
        load_profile(Path(file.name))
    expected = file.with_suffix(".expected").read_text(encoding="utf-8")
    assert f"{caught.value}\n" == expected


@pytest.mark.parametrize("file", VALID, ids=name_of)
def test_a_valid_file_has_no_fault_and_fits_the_schema(file: Path) -> None:
    assert load_profile(file).name == file.stem
    Draft202012Validator(schema()).validate(read_yaml(file, "profile").value)


@pytest.mark.parametrize("file", [file for file in INVALID if file.stem != "empty"], ids=name_of)
def test_the_schema_refuses_an_invalid_file(file: Path) -> None:
    value = read_yaml(file, "profile").value
    assert Draft202012Validator(schema()).is_valid(value) == (file.stem in BEYOND_SCHEMA)

"""The pipelines of the project, and what its pages are made of."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from jsonschema import Draft202012Validator

from edgert.pipeline.check import check
from edgert.pipeline.load import load
from edgert.pipeline.schema import schema
from edgert.stages.registry import Registry

ROOT = Path(__file__).parents[3]
SHIPPED = sorted((ROOT / "pipelines").glob("*.yaml"))
READS_NO_INPUT = {"cameras"}


@pytest.mark.parametrize("file", SHIPPED, ids=lambda file: file.stem)
def test_a_shipped_pipeline_has_no_fault_and_names_its_schema(file: Path) -> None:
    variables = {"EDGERT_INPUT": "given", "EDGERT_OUTPUT": "given"}
    if file.stem in READS_NO_INPUT:
        del variables["EDGERT_INPUT"]
    checked = check(load(file, variables), Registry({}))
    assert (checked.faults, checked.warnings) == ((), ())
    text = file.read_text(encoding="utf-8")
    assert text.startswith("# yaml-language-server: $schema=../docs/pipeline.schema.json\n")
    Draft202012Validator(schema(Registry({}))).validate(yaml.safe_load(text))


def test_the_generated_pages_are_as_the_code() -> None:
    command = [sys.executable, str(ROOT / "tools" / "make-docs"), "--check"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_the_example_of_the_page_is_a_good_pipeline(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "pipeline-file.md").read_text(encoding="utf-8")
    example = page.split("```yaml\n")[1].split("```")[0]
    file = tmp_path / "example.yaml"
    file.write_text(example, encoding="utf-8")
    assert check(load(file, {}), Registry({})).faults == ()
    Draft202012Validator(schema(Registry({}))).validate(yaml.safe_load(example))

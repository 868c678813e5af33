"""The pipelines that are shipped: each says how it is run, and runs on any machine."""

from __future__ import annotations

import re
from itertools import chain
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parent.parent.parent
SHIPPED = sorted((REPOSITORY / "pipelines").glob("*.yaml"))
NAMES = [file.stem for file in SHIPPED]


@pytest.mark.parametrize("file", SHIPPED, ids=NAMES)
def test_the_head_says_how_it_is_run(file):
    comments = [line for line in file.read_text().splitlines() if line.startswith("#")]
    assert any(f"edgert run pipelines/{file.name} " in line for line in comments)


@pytest.mark.parametrize("file", SHIPPED, ids=NAMES)
def test_the_name_is_that_of_the_file(file):
    assert re.search(rf"^name: {file.stem}$", file.read_text(), re.MULTILINE)


@pytest.mark.parametrize("file", SHIPPED, ids=NAMES)
def test_only_classes_of_cores_are_named(file):
    """Numbers would be a fault on a machine with fewer."""
    named = re.findall(r"cores: (\S+)", file.read_text())
    assert set(named) <= {"e-cores", "p-cores", "any"}


def test_edgert_check_finds_no_fault_in_any(edgert, pulled) -> None:
    """As they are, on the samples that they name, if they name any."""
    samples = {file: re.findall(r"sample:[\w-]+", file.read_text()) for file in SHIPPED}
    for name in set(chain.from_iterable(samples.values())):
        pulled(name)
    done = edgert("check", *SHIPPED)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.count(": ok, ") == len(SHIPPED)

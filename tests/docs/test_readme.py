"""The README's commands work as they are written, in a fresh copy of the checkout.

The test command would run this file again, which would run the test command again: inside, this
file skips itself (``EDGERT_INSIDE_README``), and ``PYTEST_ADDOPTS`` names a few tests, so that the
command stays as it is written and still ends soon.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from edgert.results import decode, encode_line

REPOSITORY = Path(__file__).parent.parent.parent
README = (REPOSITORY / "README.md").read_text()
INSIDE = "EDGERT_INSIDE_README"
A_FEW_TESTS = "tests/unit/test_errors.py tests/unit/test_slot.py"

pytestmark = pytest.mark.skipif(INSIDE in os.environ, reason="run by the README's test command")


def sections() -> dict[str, str]:
    parts = re.split(r"^## (.+)$", README, flags=re.MULTILINE)[1:]
    return dict(zip(parts[::2], parts[1::2], strict=True))


def command_under(heading: str) -> str:
    (block,) = re.findall(r"^```\w*\n(.*?)^```$", sections()[heading], re.DOTALL | re.MULTILINE)
    (line,) = block.splitlines()
    return line


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of what git knows and does not ignore, without history."""
    folder = tmp_path_factory.mktemp("readme") / "edgert"
    listed = subprocess.run(
        ["git", "-c", "safe.directory=*", "ls-files", "-z", "-co", "--exclude-standard"],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        check=True,
    )
    for name in listed.stdout.split("\0"):
        if name and (REPOSITORY / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(REPOSITORY / name, folder / name)
    return folder


def run_as_written(command: str, checkout: Path, **more: str) -> subprocess.CompletedProcess[str]:
    """Run a line of the README as a user's shell would."""
    ours = ("VIRTUAL_ENV", "PYTHON", "PYTEST", "EDGERT")
    environment = {name: text for name, text in os.environ.items() if not name.startswith(ours)}
    environment |= {"EDGERT_CACHE": str(checkout.parent / "cache"), **more}
    return subprocess.run(
        ["sh", "-c", command],
        cwd=checkout,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=900,
    )


@pytest.mark.parametrize("heading", ["Run it", "Test it"])
def test_a_command_is_one_line_and_its_package_is_named_above(heading):
    assert command_under(heading).startswith("python3 -m venv .venv && ")
    before, _, _ = sections()[heading].partition("```")
    assert "python3-venv" in before


def test_every_file_the_readme_names_is_there():
    links = re.findall(r"\]\(([^)#]+)\)", README)
    assert links
    missing = [link for link in links if "://" not in link and not (REPOSITORY / link).exists()]
    assert missing == []


def test_the_pipeline_shown_is_the_one_shipped():
    """Comments apart: the README shows what the reader will find."""
    (shown,) = re.findall(r"^```yaml\n(.*?)^```$", README, re.DOTALL | re.MULTILINE)
    shipped = (REPOSITORY / "pipelines/detect.yaml").read_text()
    assert without_comments(shown) == without_comments(shipped)


def test_the_line_shown_is_a_result():
    (shown,) = re.findall(r"^```json\n(.*?)^```$", README, re.DOTALL | re.MULTILINE)
    result = decode(shown)
    assert encode_line(result) == shown.encode()
    assert [found.label for found in result.detections] == ["person"]


def without_comments(text: str) -> list[str]:
    lines = (re.sub(r"(^|\s+)#.*$", "", line).rstrip() for line in text.splitlines())
    return [line for line in lines if line]


@pytest.mark.slow
@pytest.mark.process
def test_the_run_command_finds_people(checkout):
    done = run_as_written(command_under("Run it"), checkout)
    assert done.returncode == 0, done.stderr
    results = [json.loads(line) for line in done.stdout.splitlines()]
    assert {result["schema"] for result in results} == {"edgert.result/1"}
    assert [result["frame"] for result in results] == list(range(250))
    labels = {found["label"] for result in results for found in result["detections"]}
    assert labels == {"person"}


@pytest.mark.slow
def test_the_test_command_passes(checkout):
    more = {INSIDE: "1", "PYTEST_ADDOPTS": A_FEW_TESTS}
    done = run_as_written(command_under("Test it"), checkout, **more)
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"\d+ passed.* in ", done.stdout)


def test_the_script_runs_without_a_main_guard(tmp_path: Path) -> None:
    (script,) = re.findall(r"^```python\n(.*?)^```$", README, re.DOTALL | re.MULTILINE)
    file = tmp_path / "people.py"
    file.write_text(script)
    done = subprocess.run(
        [sys.executable, file],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert [int(line.split()[0]) for line in lines] == list(range(250))
    assert any("'person'" in line for line in lines)

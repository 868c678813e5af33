"""A script that forks while it has a run: the child has nothing of it, and takes nothing of it."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from tests.process.runs import REPOSITORY, write_pipeline
from tests.process.test_api import finding

pytestmark = pytest.mark.process

BEGIN = """
    import os, sys
    import edgert
    from edgert.errors import UserError

    pipeline = edgert.Pipeline.load(sys.argv[1])
    results = pipeline.results()
    frames = [next(results).frame]
    parent = os.getpid()
"""
GO_ON = """
    frames += [result.frame for result in results]
    assert frames == list(range(50)), frames
"""


def ends_well(folder: Path, *parts: str) -> None:
    file = write_pipeline(folder, finding(50))
    script = "".join(map(textwrap.dedent, parts))
    done = subprocess.run(
        # Python warns of ZeroMQ's thread, which the child does not need.
        [sys.executable, "-W", "ignore::DeprecationWarning", "-c", script, str(file)],
        capture_output=True,
        text=True,
        check=False,
        cwd=REPOSITORY,
        env={**os.environ, "PYTHONPATH": str(REPOSITORY)},
        timeout=25,
    )
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("does", ["sys.exit(0)", "results.close(); os._exit(0)"])
def test_a_child_that_drops_what_its_parent_iterates_over(tmp_path: Path, does: str) -> None:
    child = f"""
    child = os.fork()
    if child == 0:
        {does}
    """
    ends_well(tmp_path, BEGIN, child, GO_ON, "assert os.waitpid(child, 0)[1] == 0")


def test_a_child_that_asks_for_the_next_result_is_told_whose_they_are(tmp_path: Path) -> None:
    child = """
    child = os.fork()
    if child == 0:
        try:
            next(results)
        except UserError as error:
            fault = f"is run by process {parent}, of which this one is a fork"
            whole = f"pipeline '{pipeline.plan.name}': {fault}. Go on there, or begin a run here."
            os._exit(str(error) != whole)
        os._exit(2)
    assert os.waitpid(child, 0)[1] == 0
    """
    ends_well(tmp_path, BEGIN, child, GO_ON)


def test_a_child_that_lives_on_holds_neither_the_run_nor_its_name(tmp_path: Path) -> None:
    child = """
    wait, go = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(go)
        os.read(wait, 1)
        os._exit(0)
    """
    again = """
    assert len(list(pipeline.results())) == 50
    os.close(go)
    assert os.waitpid(child, 0)[1] == 0
    """
    ends_well(tmp_path, BEGIN, child, GO_ON, again)


def test_a_fork_of_who_shows_the_progress_comes_back_into_a_loop_that_is_not_its_own(
    tmp_path: Path,
) -> None:
    script = """
    import os, sys
    import edgert

    parent, children = os.getpid(), []

    def fork_once(progress):
        if not children:
            children.append(os.fork())

    try:
        summary = edgert.Pipeline.load(sys.argv[1]).run(on_tick=fork_once)
    except edgert.errors.UserError as error:
        os._exit(f"is run by process {parent}, of which" not in str(error))
    assert os.getpid() == parent
    assert os.waitpid(children[0], 0)[1] == 0
    assert summary.frames["processed"] == 50
    """
    ends_well(tmp_path, script)

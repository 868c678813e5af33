from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from edgert.cli.summary_file import require_own_file
from edgert.errors import UserError
from tests.process.runs import load, run, write_pipeline


def chain(folder: Path) -> dict[str, dict[str, Any]]:
    return {
        "src": {"kind": "Numbers", "count": 3},
        "out": {"kind": "Write", "inputs": {"n": "src.n"}, "path": str(folder / "out.txt")},
    }


@pytest.mark.parametrize("path", ["out.txt", "./out.txt", "link.txt"])
def test_a_summary_is_not_written_over_results(tmp_path: Path, path: str) -> None:
    pipeline = load(tmp_path, chain(tmp_path))
    (tmp_path / "link.txt").symlink_to("out.txt")
    with pytest.raises(UserError, match="is `path` of stage 'out'"):
        require_own_file(tmp_path / path, tmp_path / "pipeline.yaml", pipeline.plan)


def test_a_summary_is_not_written_over_the_pipeline_file(tmp_path: Path) -> None:
    pipeline = load(tmp_path, chain(tmp_path))
    os.link(tmp_path / "pipeline.yaml", tmp_path / "same.yaml")
    with pytest.raises(UserError, match="is the pipeline file"):
        require_own_file(tmp_path / "same.yaml", tmp_path / "pipeline.yaml", pipeline.plan)


@pytest.mark.process
def test_a_summary_of_an_earlier_run_is_replaced_whole(tmp_path: Path) -> None:
    (tmp_path / "summary.json").write_text("{}" * 100_000)
    _, _, _, summary = run(write_pipeline(tmp_path, chain(tmp_path)))
    assert summary["frames"]["processed"] == 3
    assert not list(tmp_path.glob(".summary*"))

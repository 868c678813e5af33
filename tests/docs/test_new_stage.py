"""``docs/new-stage.md``, followed as it is written."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.docs.walkthrough import follow


@pytest.mark.process
def test_the_walkthrough_works_as_written(tmp_path: Path) -> None:
    tested, ran, recorded = follow("new-stage.md", tmp_path)
    assert tested.returncode == 0, tested.stdout + tested.stderr
    assert ran.returncode == 0, ran.stderr
    ok, *lines = ran.stdout.splitlines()
    assert ok.startswith("steady.yaml: ok")
    results = [json.loads(line) for line in lines]
    assert [result["frame"] for result in results] == list(range(60))
    assert not results[0]["detections"]
    assert not results[1]["detections"]
    assert any(result["detections"] for result in results)
    assert recorded.returncode == 0, recorded.stderr
    assert "square: read 50 = processed 50 + dropped 0 + lost 0" in recorded.stderr
    assert (tmp_path / "square.mp4").stat().st_size

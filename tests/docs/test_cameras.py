"""The page about cameras: its pipelines are good, and what it says of keys is so."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from edgert.stages.source.video_options import VideoOptions

PAGE = (Path(__file__).parent.parent.parent / "docs" / "cameras.md").read_text()
PIPELINES = re.findall(r"```yaml\n(version:.*?)```", PAGE, re.DOTALL)


@pytest.mark.parametrize("text", PIPELINES, ids=["cameras", "drop"])
def test_its_pipelines_have_no_fault(edgert, pulled, tmp_path: Path, text: str) -> None:
    pulled("person-ssdlite")
    file = tmp_path / "pipeline.yaml"
    file.write_text(text)
    done = edgert("check", file)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("key", ["open_timeout_s", "first_frame_timeout_s", "read_timeout_s"])
def test_the_deadlines_are_those_of_the_code(key: str) -> None:
    told = re.search(rf"\| `{key}` \| (\d+) \|", PAGE)
    assert told
    assert float(told[1]) == getattr(VideoOptions(uri="a.mp4"), key)

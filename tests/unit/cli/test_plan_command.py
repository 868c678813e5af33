from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from edgert.cli.plan import command
from tests.unit.stages.source.media import make_video

PIPELINES = Path(__file__).parents[3] / "pipelines"


def plan(*arguments: str) -> Result:
    return CliRunner().invoke(command, list(arguments))


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        (["limits.in_flight=2"], "2 (auto)"),
        (["limits.in_flight=2", "detector.requests=auto"], "2 (auto)"),
        (["detector.requests=1"], "1"),
    ],
)
def test_requests_in_flight_are_shown(
    settings: list[str], said: str, tmp_path: Path, yolox_onnx: Path
) -> None:
    video = tmp_path / "a.mkv"
    make_video(video)
    arguments = [str(PIPELINES / "detect-yolox.yaml"), "--input", str(video)]
    for setting in [f"detector.model={yolox_onnx}", *settings]:
        arguments += ["--set", setting]
    shown = plan(*arguments)
    assert shown.exit_code == 0, shown.output
    assert f"\nrequests in flight:\n  detector: {said}\n" in shown.output
    assert json.loads(plan(*arguments, "--format", "json").stdout)["requests"] == {
        "detector": int(said.partition(" ")[0])
    }

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


def test_a_camera_need_not_be_there_and_its_password_is_not_shown(tmp_path: Path) -> None:
    file = tmp_path / "p.yaml"
    file.write_text(
        """
version: 1
name: cam
stages:
  cam: {kind: source.video, uri: "rtsp://bob:${CAM_PASSWORD}@192.0.2.1/1?token=${CAM_PASSWORD}"}
  film: {kind: sink.video, inputs: {image: cam.image}, path: out.mp4}
"""
    )
    environment = {"CAM_PASSWORD": "hunter2"}
    for style in ("text", "json"):
        shown = CliRunner(env=environment).invoke(command, [str(file), "--format", style])
        assert shown.exit_code == 0, shown.output
        assert "hunter2" not in shown.output
    planned = json.loads(shown.stdout)
    stage = next(s for worker in planned["workers"] for s in worker["stages"] if s["name"] == "cam")
    assert stage["settings"]["uri"] == "rtsp://***@192.0.2.1/1?token=***"
    assert stage["output_ports"]["image"]["tensors"]["y"]["shape"] == [1080, 1920]

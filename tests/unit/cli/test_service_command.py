"""``edgert service`` without a systemd: what it refuses, and what it would do."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.conftest import Edgert


@pytest.fixture
def pipeline(tmp_path: Path) -> Path:
    stages = {
        "camera": {"kind": "source.images", "uri": "frames"},
        "record": {"kind": "sink.video", "inputs": {"image": "camera.image"}, "path": "out.mp4"},
    }
    file = tmp_path / "cam.yaml"
    file.write_text(json.dumps({"version": 1, "name": "cam", "stages": stages}))
    return file


def test_a_path_that_will_lead_nowhere_is_a_fault(edgert: Edgert, pipeline: Path, tmp_path: Path):
    from PIL import Image

    (tmp_path / "frames").mkdir()
    Image.new("RGB", (64, 48)).save(tmp_path / "frames" / "1.png")
    assert edgert("check", pipeline).returncode == 0
    done = edgert("service", "install", "cam", pipeline, "--root", tmp_path, "--dry-run")
    assert done.returncode == 2
    (line,) = (said for said in done.stderr.splitlines() if not said.startswith("warning: "))
    assert line.startswith(f"{pipeline}:1:")
    assert line.endswith("(once the file is in /etc/edgert). Write the whole path, from / on.")


def test_a_dry_run_writes_nothing(edgert: Edgert, pipeline: Path, tmp_path: Path):
    from PIL import Image

    root, frames = tmp_path / "image", tmp_path / "frames"
    root.mkdir()
    frames.mkdir()
    Image.new("RGB", (64, 48)).save(frames / "1.png")
    pipeline.write_text(pipeline.read_text().replace('"frames"', json.dumps(str(frames))))
    done = edgert("service", "install", "cam", pipeline, "--root", root, "--dry-run")
    assert done.returncode == 0, done.stderr
    assert f"written   {root}/etc/edgert/cam.yaml\n" in done.stdout
    assert list(root.iterdir()) == []


def test_two_services_cannot_run_one_name(edgert: Edgert, pipeline: Path, tmp_path: Path):
    from PIL import Image

    Image.new("RGB", (64, 48)).save(tmp_path / "1.png")
    pipeline.write_text(pipeline.read_text().replace("frames", "${FRAMES}"))
    installed = tmp_path / "etc/edgert"
    installed.mkdir(parents=True)
    for name in ("first", "second"):
        (installed / f"{name}.env").write_text(f"FRAMES={tmp_path}/1.png\n")
    (installed / "first.yaml").write_text(pipeline.read_text())
    done = edgert("service", "install", "second", pipeline, "--root", tmp_path, "--dry-run")
    assert done.returncode == 2
    assert done.stderr.splitlines()[-1] == (
        f"{pipeline}: name 'cam': service 'first' runs a pipeline of that name, and only one of "
        "them can. Give it another `name`."
    )


def test_names_and_services_that_are_none(edgert: Edgert, pipeline: Path, tmp_path: Path):
    done = edgert("service", "install", "Cam", pipeline)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("'Cam': is not a name of a service. Use at most 40 of ")
    done = edgert("service", "remove", "cam", "--root", tmp_path)
    assert (done.returncode, done.stderr) == (
        2,
        "service 'cam': is not installed. Installed are: none.\n",
    )

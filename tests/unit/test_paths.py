"""Paths that somebody wrote: homes, names that are too long, folders that are closed to us."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from edgert.cli.run import command
from edgert.errors import PipelineError, UserError
from edgert.paths import below
from tests.unit.stages.source.media import make_video

PIPELINE = """\
version: 1
name: paths
stages:
  camera: {kind: %s, uri: %s}
  recorder: {kind: sink.video, inputs: {image: camera.image}, path: %s}
"""
LONG = "a" * 300


def test_a_home_is_found_from_any_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/jo")
    assert below("/pipelines", "~/a.mp4") == Path("/home/jo/a.mp4")
    assert below("pipelines", "~/a.mp4") == Path("/home/jo/a.mp4")
    assert below("/pipelines", "/a.mp4") == Path("/a.mp4")
    assert below("/pipelines", "~nobody-of-this-name/a") == Path(
        "/pipelines/~nobody-of-this-name/a"
    )


@pytest.mark.parametrize(
    ("kind", "uri", "path", "said"),
    [
        ("source.video", LONG, "o.mp4", "stage 'camera', file '{here}/" + LONG),
        ("source.images", LONG, "o.mp4", "stage 'camera', '{here}/" + LONG),
        ("source.video", "~nobody-here/a.mkv", "o.mp4", "no such file or directory"),
        ("source.images", "~nobody-here/a.png", "o.mp4", "no such file or directory"),
        ("source.video", "loop.mkv", "o.mp4", "loop.mkv': "),
        ("source.video", "a.mkv", LONG + ".mp4", "cannot be written: File name too long"),
        ("source.video", "a.mkv", "~nobody-here/o.mp4", "there is no directory"),
        ("source.video", "loop.mkv", "loop.mkv", "too many levels of symbolic links"),
    ],
)
def test_a_path_that_cannot_be_is_told_with_its_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, uri: str, path: str, said: str
) -> None:
    monkeypatch.chdir(tmp_path)
    make_video(tmp_path / "a.mkv")
    (tmp_path / "loop.mkv").symlink_to("loop.mkv")
    (tmp_path / "p.yaml").write_text(PIPELINE % (kind, uri, path))
    result = CliRunner().invoke(command, ["p.yaml", "--no-progress"])
    assert isinstance(result.exception, PipelineError)
    assert said.format(here=tmp_path) in str(result.exception)


@pytest.mark.parametrize("option", ["--summary", "--set=camera.credentials"])
def test_so_is_one_of_an_option(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, option: str
) -> None:
    monkeypatch.chdir(tmp_path)
    make_video(tmp_path / "a.mkv")
    (tmp_path / "p.yaml").write_text(PIPELINE % ("source.video", "a.mkv", "o.mp4"))
    given = [f"{option}={LONG}"] if "=" in option else [option, LONG]
    result = CliRunner().invoke(command, ["p.yaml", *given])
    assert isinstance(result.exception, UserError)

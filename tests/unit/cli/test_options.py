"""Options that commands share, read by a command of the test's own."""

from __future__ import annotations

import json
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from edgert.cli.options import log_options, pipeline_options


@click.command()
@pipeline_options
def probe(file: Path, settings: tuple[str, ...], variables: dict[str, str]) -> None:
    click.echo(json.dumps([str(file), settings, variables]))


def read(*arguments: str) -> list:
    done = CliRunner().invoke(probe, arguments)
    assert done.exit_code == 0, done.output
    return json.loads(done.output)


def test_nothing_given_sets_nothing():
    assert read("a.yaml") == ["a.yaml", [], {}]


def test_settings_keep_their_order_and_their_text():
    assert read("a.yaml", "--set", "b.c=d=e", "--set", "b.c=")[1] == ["b.c=d=e", "b.c="]


@pytest.mark.parametrize("kept", ["-", "sample:bikes", "rtsp://camera/1", "/a/b.mp4"])
def test_what_is_no_relative_path_is_kept(kept):
    variables = read("a.yaml", "--input", kept, "--output", kept)[2]
    assert variables == {"EDGERT_INPUT": kept, "EDGERT_OUTPUT": kept}


def test_a_relative_path_starts_from_the_working_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert read("a.yaml", "--input", "b.mp4")[2] == {"EDGERT_INPUT": str(tmp_path / "b.mp4")}


def test_log_options_set_logging_up_and_hand_the_choice_on(edgert_logging):
    @click.command()
    @log_options
    def talk(log_level: str, log_format: str) -> None:
        edgert_logging.info("hidden")
        edgert_logging.warning("shown")
        click.echo(f"{log_level} {log_format}")

    done = CliRunner().invoke(talk, ["--log-level", "WARNING", "--log-format", "json"])
    assert done.stdout == "warning json\n"
    assert json.loads(done.stderr)["message"] == "shown"


@pytest.mark.parametrize("way", [("--input",), ("--set", "camera.uri=")])
def test_a_password_that_everybody_can_see_is_warned_of(way):
    *option, last = way
    url = "rtsp://bob:hunter2@camera/1"
    arguments = [*option, last + url] if option else [last, url]
    done = CliRunner().invoke(probe, ["a.yaml", *arguments])
    assert "every user of this machine can see" in done.stderr
    assert "hunter2" not in done.stderr
    assert (
        "warning" not in CliRunner().invoke(probe, ["a.yaml", "--input", "rtsp://camera/1"]).stderr
    )

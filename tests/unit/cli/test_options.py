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
def probe(file: Path, overrides: dict[str, str], environment: dict[str, str]) -> None:
    places = [environment.get("EDGERT_INPUT"), environment.get("EDGERT_OUTPUT")]
    click.echo(json.dumps([str(file), overrides, *places]))


def read(*arguments: str) -> list:
    done = CliRunner(env={"EDGERT_INPUT": None, "EDGERT_OUTPUT": None}).invoke(probe, arguments)
    assert done.exit_code == 0, done.output
    return json.loads(done.output)


def test_nothing_given_leaves_the_environment_alone():
    assert read("a.yaml") == ["a.yaml", {}, None, None]


def test_overrides_are_split_at_the_first_sign():
    _, overrides, *_ = read(
        "a.yaml", "--set", "a.b=c=d", "--set", "a.shape.x=[1, 2]", "--set", "c.d="
    )
    assert overrides == {"a.b": "c=d", "a.shape.x": "[1, 2]", "c.d": ""}


@pytest.mark.parametrize("wrong", ["a", "a.b", "=1", "a=1", ".b=1", "a b.c=1"])
def test_a_malformed_override_is_refused_with_an_example(wrong):
    done = CliRunner().invoke(probe, ["a.yaml", "--set", wrong])
    assert done.exit_code == 2
    assert "is not STAGE.KEY=VALUE, for example" in done.output


@pytest.mark.parametrize(
    "kept", ["-", "sample:bikes", "rtsp://camera/1", "tcp://*:5555", "/a/b.mp4"]
)
def test_what_is_no_relative_path_is_kept(kept):
    assert read("a.yaml", "--input", kept, "--output", kept)[2:] == [kept, kept]


def test_a_relative_path_starts_from_the_working_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert read("a.yaml", "--input", "b.mp4")[2] == str(tmp_path / "b.mp4")


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

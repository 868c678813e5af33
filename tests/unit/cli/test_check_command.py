"""``edgert check`` and ``edgert schema`` as a user meets them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from jsonschema import Draft202012Validator

from edgert.cli.check import command as check_command
from edgert.cli.schema import command as schema_command
from tests.unit.stages.source.media import make_video

GOOD = """\
version: 1
name: detect
stages:
  camera:
    kind: source.video
    uri: "${EDGERT_INPUT}"
  prepare: {kind: preprocess.image, inputs: {image: camera.image}, for: detector}
  detector: {kind: infer, inputs: {tensor: prepare.tensor}, model: yolox-nano}
  people: {kind: postprocess.detection, inputs: {raw: detector.outputs}}
  results:
    kind: sink.jsonl
    inputs: {detections: people.detections}
    path: "${EDGERT_OUTPUT, -}"
"""


@pytest.fixture
def good(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("EDGERT_INPUT", raising=False)
    make_video(Path("a.mkv"))
    Path("good.yaml").write_text(GOOD)
    Path("bad.yaml").write_text(
        GOOD.replace("    inputs", "    input").replace("name: detect", "name: Detect")
    )
    return "good.yaml"


def check(*arguments: str) -> Result:
    return CliRunner().invoke(check_command, arguments)


def test_a_good_file_is_ok(good: str) -> None:
    result = check(good, "--input", "a.mkv")
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout == "good.yaml: ok, 5 stages\n"


def test_an_option_that_the_file_does_not_read_is_told(good: str) -> None:
    """`--output` of a file whose path is written out would put the results elsewhere, unsaid."""
    Path(good).write_text(GOOD.replace("${EDGERT_OUTPUT, -}", "out.jsonl"))
    result = check(good, "--input", "a.mkv", "--output", "mine.jsonl")
    assert result.exit_code == 0
    assert result.stderr == (
        "warning: good.yaml: --output (EDGERT_OUTPUT): nothing in the file reads it, so it changes "
        "nothing. Write ${EDGERT_OUTPUT, default} where it is meant, or use --set.\n"
    )


def test_every_fault_of_every_file_is_one_line(good: str) -> None:
    result = check(good, "bad.yaml", "none.yaml", "--input", "a.mkv", "--set", "camera.cores=x")
    lines = result.stderr.splitlines()
    assert result.exit_code == 2
    assert result.stdout == ""
    assert sum(line.startswith("--set camera.cores=x: stage 'camera', key") for line in lines) == 2
    assert any(line.startswith("bad.yaml:2:7: key 'name': 'Detect' is not") for line in lines)
    assert any(line.startswith("bad.yaml:12:5: stage 'results', key 'input': ") for line in lines)
    assert lines[-1].startswith("none.yaml: the file: it cannot be read: No such file")


def test_the_same_as_json(good: str) -> None:
    result = check("--json", good, "bad.yaml")
    found = json.loads(result.stdout)
    assert found["schema"] == "edgert.check/1"
    first, second = found["files"]
    assert (first["ok"], first["file"], first["stages"]) == (False, good, 5)
    assert first["faults"][0] == {
        "place": "stage 'camera', key 'uri'",
        "fault": "the variable EDGERT_INPUT is not set and has no default",
        "mend": "Set it or give --input, or write ${EDGERT_INPUT, default}",
        "file": good,
        "line": 6,
        "column": 10,
    }
    assert len(second["faults"]) > 1


def test_a_warning_is_marked_and_no_failure(good: str, tmp_path: Path) -> None:
    path = tmp_path / "two.yaml"
    path.write_text(GOOD.replace("yolox-nano}", "yolox-nano, requests: 8}"))
    result = check(str(path), "--input", "a.mkv")
    assert result.exit_code == 0
    assert result.stderr.startswith(f"warning: {path}:8:90: stage 'detector', key 'requests': ")
    assert result.stdout == f"{path}: ok, 5 stages\n"


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ("ato", "'ato' does not fit. Give a whole number or 'auto'."),
        ("1.5", "'1.5' does not fit. Give a whole number or 'auto'."),
        ("0", "'0' is too small. Give a whole number between 1 and 64 or 'auto'."),
        ("yes", "'yes' (YAML reads it as true) is not a whole number. "
         "Give a whole number between 1 and 64."),
    ],
)  # fmt: skip
def test_what_requests_may_not_be(written: str, said: str, good: str, tmp_path: Path) -> None:
    path = tmp_path / "two.yaml"
    path.write_text(GOOD.replace("yolox-nano}", f"yolox-nano, requests: {written}}}"))
    result = check(str(path), "--input", "a.mkv")
    assert result.exit_code == 2
    assert f"{path}:8:90: stage 'detector', key 'requests': {said}\n" in result.stderr


def in_lines(*lines: str) -> str:
    """Return the good file with more lines in its detector."""
    detector = "kind: infer, inputs: {tensor: prepare.tensor}, model: yolox-nano"
    block = "".join(f"\n    {line}" for line in [*detector.split(", "), *lines])
    return GOOD.replace(f" {{{detector}}}", block)


def test_a_device_that_names_no_runtime_is_told_where_it_is_written(good: str) -> None:
    device = 'device: [CPU, "openvno:CPU"]'
    Path(good).write_text(in_lines(device, "max_output:", "  nothing: [1]"))
    result = check(good, "--input", "a.mkv")
    assert result.stderr.splitlines() == [
        "good.yaml:12:19: stage 'detector', device 'openvno:CPU': there is no backend of that "
        "name. Did you mean 'openvino'?",
        "good.yaml:14:7: stage 'detector', max_output: model 'yolox-nano' has no output "
        "'nothing'. Its outputs: output.",
    ]


def test_faults_of_a_runtimes_options_are_told_where_they_are_written(good: str) -> None:
    pytest.importorskip("openvino")
    own = ['  "onnxruntime:CPU":', "    spining: true", "    arena: much"]
    device = 'device: ["openvino:CPU", "onnxruntime:CPU"]'
    Path(good).write_text(in_lines(device, "options:", "  openvino: {NUM_STREAM: 1}", *own))
    result = check(good, "--input", "a.mkv")
    assert result.exit_code == 2
    assert result.stderr.splitlines() == [
        "good.yaml:14:18: stage 'detector', device 'openvino:CPU', options: there is no option "
        "'NUM_STREAM'. Did you mean 'NUM_STREAMS'?",
        "good.yaml:16:9: stage 'detector', device 'onnxruntime:CPU', options: there is no option "
        "'spining'. Did you mean 'spinning'?",
        "good.yaml:17:16: stage 'detector', device 'onnxruntime:CPU', options: Expected `bool`, "
        "got `str` - at `$.arena`.",
    ]


@pytest.mark.parametrize(
    ("setting", "said"),
    [
        ("camera.uri=[a]", "key 'uri': a list is not text. Give text."),
        ("results.path={a: 1}", "key 'path': a mapping is not text. Give text."),
        ("camera.max_size=[64]", "key 'max_size': value 2 of the list is missing. Add it."),
    ],
)
def test_a_setting_of_the_wrong_kind_is_told_as_what_it_is(
    good: str, setting: str, said: str
) -> None:
    """A list was taken for empty text: refused as that, and where a key may be empty not at all."""
    result = check(good, "--input", "a.mkv", "--set", setting)
    assert result.exit_code == 2
    stage = setting.partition(".")[0]
    assert f"--set {setting}: stage '{stage}', {said}" in result.stderr.splitlines()


def test_an_option_of_the_command_line_is_named_as_such(good: str) -> None:
    option = "detector.options.spining=true"
    given = ("--set", "detector.device=onnxruntime:CPU", "--set", option)
    result = check(good, "--input", "a.mkv", *given)
    assert result.stderr == (
        f"--set {option}: stage 'detector', device 'onnxruntime:CPU', options: there is no option "
        "'spining'. Did you mean 'spinning'?\n"
    )


def test_the_schema_is_printed() -> None:
    result = CliRunner().invoke(schema_command)
    whole = json.loads(result.stdout)
    Draft202012Validator.check_schema(whole)
    assert "stage.source.video" in whole["$defs"]

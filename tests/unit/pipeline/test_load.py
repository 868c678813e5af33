"""Reading: links in every form, substitutions, settings, and where a fault points."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from edgert.errors import Fault, PipelineError
from edgert.pipeline.load import load, read
from edgert.pipeline.spec import LinkSpec, QueueSpec, StageSpec
from edgert.pipeline.yamltext import MAX_BYTES

Write = Callable[[str], Path]
LINK = LinkSpec.model_validate("camera.image")


def faults_of(file: Path, *settings: str) -> list[str]:
    with pytest.raises(PipelineError) as caught:
        load(file, {}, settings)
    return [str(fault).replace(str(file), "p.yaml") for fault in caught.value.faults]


@pytest.mark.parametrize(
    "written",
    [
        "camera.image",
        "[camera.image]",
        "{from: camera.image}",
        "[{from: camera.image}]",
        "{from: camera.image, queue: {slots: 2}}",
    ],
)
def test_an_edge_may_be_written_in_each_form(written: str, small: str, write: Write) -> None:
    document = load(write(small.replace("camera.image", written)), {})
    assert document.spec.stages["prepare"].inputs == {"image": (LINK,)}


def test_an_edge_knows_its_stage_its_port_and_how_it_waits(small: str, write: Write) -> None:
    text = small.replace(
        "camera.image", "{from: camera.image, queue: {slots: 1, when_full: drop-oldest}}"
    )
    (link,) = load(write(text), {}).spec.stages["prepare"].inputs["image"]
    assert (link.stage, link.port) == ("camera", "image")
    assert link.queue == QueueSpec(slots=1, when_full="drop-oldest")


def test_an_edge_is_not_called_source_in_a_file(small: str, write: Write) -> None:
    text = small.replace("camera.image", "{source: camera.image}")
    assert "there is no key 'source'" in "".join(faults_of(write(text)))


@pytest.mark.parametrize(
    ("written", "cores"),
    [("p-cores", "p-cores"), ('"0-3"', "0-3"), ("[0, 2]", (0, 2)), ("0-1, 3", "0-1,3")],
)
def test_cores_may_be_a_class_a_range_or_a_list(written: str, cores: object) -> None:
    value = written.strip('"') if not written.startswith("[") else [0, 2]
    assert StageSpec.model_validate({"kind": "infer", "cores": value}).cores == cores


def test_what_belongs_to_the_kind_is_kept_apart(small: str, write: Write) -> None:
    stage = load(write(small), {}).spec.stages["camera"]
    assert stage.settings == {"uri": "sample:bikes"}


def test_a_document_knows_its_folder_and_where_things_stand(small: str, write: Write) -> None:
    file = write(small)
    document = load(file, {})
    assert document.folder == file.parent
    fault = document.fault(("stages", "camera", "uri"), "stage 'camera'", "it is gone", "Look")
    assert fault == Fault("stage 'camera'", "it is gone", "Look", str(file), 6, 10)


def test_a_fault_of_what_is_not_written_points_at_its_nearest_ancestor(
    small: str, write: Write
) -> None:
    document = load(write(small), {})
    fault = document.fault(("stages", "camera", "fps", "deeper"), "", "it is missing")
    assert (fault.place, fault.line, fault.column) == ("stage 'camera', key 'fps.deeper'", 4, 3)
    assert document.fault(("limits",), "", "it is missing").line == 1


@pytest.mark.parametrize("name", ["missing.yaml", "folder"])
def test_a_file_that_cannot_be_read_is_a_fault(name: str, tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    with pytest.raises(PipelineError, match="it cannot be read"):
        load(tmp_path / name, {})


def test_a_file_that_is_too_large_is_a_fault(tmp_path: Path) -> None:
    file = tmp_path / "large.yaml"
    file.write_bytes(b"#" * (MAX_BYTES + 1))
    with pytest.raises(PipelineError, match="larger than 1048576 bytes"):
        load(file, {})


def test_a_byte_order_mark_is_no_fault(small: str, write: Write) -> None:
    assert load(write("\ufeff" + small), {}).spec.name == "small"


def test_read_keeps_what_is_good_beside_the_faults(small: str, write: Write) -> None:
    text = small.replace("version: 1", "version: 2").replace("    kind: test.scale\n", "")
    document = read(write(text), {})
    assert [fault.line for fault in document.faults] == [1, 7]
    assert list(document.spec.stages) == ["camera", "prepare", "count"]
    assert document.is_whole


def test_read_knows_that_edges_are_missing(small: str, write: Write) -> None:
    assert not read(write(small.replace("camera.image", "camera")), {}).is_whole


# Substitution


def test_the_given_variables_go_before_the_environment(
    small: str, write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = write(small.replace("sample:bikes", '"${MY_CAMERA, none} ${EDGERT_INPUT}"'))
    monkeypatch.setenv("MY_CAMERA", "from outside")
    monkeypatch.setenv("EDGERT_INPUT", "from outside")
    uri = load(file, {"EDGERT_INPUT": "given"}).spec.stages["camera"].settings["uri"]
    assert uri == "from outside given"


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("${NONE, 2}", 2),
        ("${NONE, 0.5}", 0.5),
        ("${NONE, true}", True),
        ("${NONE, null}", None),
        ("${NONE, text with, a comma}", "text with, a comma"),
        ("${NONE,}", ""),
        ("${ NONE , 2 }", 2),
        ("${NONE, 2}2", "22"),
        ("${NONE, }2", "2"),
        ("$${NONE}", "${NONE}"),
        ("$NONE", "$NONE"),
        ("${NONE, 0x_}", "0x_"),
    ],
)
def test_only_a_scalar_that_is_one_substitution_is_read_as_yaml(
    written: str, value: object, small: str, write: Write
) -> None:
    document = load(write(small.replace("sample:bikes", f'"{written}"')), {})
    assert document.spec.stages["camera"].settings["uri"] == value


def test_a_variable_is_never_substituted_again(small: str, write: Write) -> None:
    file = write(small.replace("sample:bikes", '"${EDGERT_INPUT}"'))
    document = load(file, {"EDGERT_INPUT": "${HOME}"})
    assert document.spec.stages["camera"].settings["uri"] == "${HOME}"


def test_every_unset_variable_is_told(small: str, write: Write) -> None:
    text = small.replace("sample:bikes", '"${NO_SUCH_URI}"').replace("small", '"${NO_SUCH_NAME}"')
    assert faults_of(write(text)) == [
        "p.yaml:2:7: key 'name': the variable NO_SUCH_NAME is not set and has no default. "
        "Set it, or write ${NO_SUCH_NAME, default}.",
        "p.yaml:6:10: stage 'camera', key 'uri': the variable NO_SUCH_URI is not set and has no "
        "default. Set it, or write ${NO_SUCH_URI, default}.",
    ]


def test_a_name_that_looks_like_a_number_stays_text_where_text_is_expected(
    small: str, write: Write
) -> None:
    file = write(small.replace("name: small", 'name: "${RUN, 007}"'))
    assert load(file, {}).spec.name == "007"


# Settings


def test_settings_go_before_the_file(small: str, write: Write) -> None:
    settings = [
        "camera.uri=a.mp4",
        "camera.uri=b=c.mp4",
        "prepare.mean=[1, 2.5]",
        "prepare.area.left=0.5",
        "limits.in_flight=2",
        "stages.count.worker=back",
    ]
    spec = load(write(small), {}, settings).spec
    assert spec.stages["camera"].settings == {"uri": "b=c.mp4"}
    assert spec.stages["prepare"].settings == {"mean": [1, 2.5], "area": {"left": 0.5}}
    assert spec.stages["count"].worker == "back"
    assert spec.limits.in_flight == 2


def test_a_setting_may_be_empty_or_change_an_edge(small: str, write: Write) -> None:
    settings = ["camera.uri=", "count.inputs.frames=camera.image"]
    spec = load(write(small), {}, settings).spec
    assert spec.stages["camera"].settings == {"uri": ""}
    assert spec.stages["count"].inputs == {"frames": (LINK,)}


def test_a_setting_replaces_a_variable_that_is_not_set(small: str, write: Write) -> None:
    file = write(small.replace("sample:bikes", '"${NO_SUCH_URI}"'))
    assert load(file, {}, ["camera.uri=2024"]).spec.stages["camera"].settings["uri"] == 2024


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("camera", "--set camera: the setting: it is not of the form STAGE.KEY=VALUE. Write --set"),
        ("=1", "--set =1: the setting: it is not of the form STAGE.KEY=VALUE. Write --set"),
        ("camera..uri=1", "it is not of the form STAGE.KEY=VALUE"),
        ("camera=1", "it names no key of a stage"),
        ("camra.uri=1", "there is no stage 'camra'. Did you mean 'camera'? Stages: camera, prep"),
        ("camera.uri.deep=1", "'stages.camera.uri' is not a mapping. Set it as a whole."),
        ("camera.uri=[1", "its value is not YAML: expected ',' or ']'"),
        ("camera.uri=*.mp4", "Quote it twice"),
        ("camera.uri=!x y", "its value is not YAML: the tag '!x' is not allowed here"),
        ("limits.in_flight=0", "--set limits.in_flight=0: limits, key 'in_flight': '0' is too sma"),
        ("limits.in_flite=2", "limits, key 'in_flite': there is no key 'in_flite'. Did you mean"),
        ("version=2", "--set version=2: key 'version': '2' is not 1. Write 1."),
    ],
)
def test_a_fault_of_a_setting_names_it(
    setting: str, message: str, small: str, write: Write
) -> None:
    (fault,) = faults_of(write(small), setting)
    assert message in fault
    assert fault.startswith(f"--set {setting}: ")

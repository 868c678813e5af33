"""Plans of small pipelines: slots, leaves, streams, workers, sizes of what several edges bring."""

from __future__ import annotations

from pathlib import Path

import pytest

from edgert import Pipeline
from edgert.errors import Fault, PipelineError, UserError
from edgert.models.reader import Models
from edgert.pipeline.check import check
from edgert.pipeline.load import read
from edgert.plan.build import find_faults
from edgert.plan.ports import merge_ports
from edgert.plan.sizes import held_by, slots_of
from edgert.stages.registry import Registry
from edgert.tensor import PortSpec, TensorSpec, image_port
from edgert.transport.edge import EdgePlan
from tests.process.runs import load
from tests.unit.stages.source.media import make_video

DETECT = """\
version: 1
name: detect
stages:
  camera: {kind: source.video, uri: camera.mkv}
  prepare: {kind: preprocess.image, inputs: {image: camera.image}, for: detector}
  detector: {kind: infer, inputs: {tensor: prepare.tensor}, model: person-ssdlite, requets: 2}
  people: {kind: postprocess.detection, inputs: {raw: detector.outputs}}
  results: {kind: sink.jsonl, inputs: {detections: people.detections}}
"""


def edge(depth: int = 2, held: int = 1, *, aside: bool = False) -> EdgePlan:
    return EdgePlan("e", "r", "n", depth, aside, held, (0,), aside)


def test_slots_are_for_who_writes_who_waits_and_who_holds() -> None:
    assert slots_of([edge()], 1, 100) == 1 + 2 + 1
    assert slots_of([edge(), edge(depth=5, held=3)], 2, 100) == 2 + 5 + 4


def test_no_more_slots_than_frames_in_flight_and_the_writers_next() -> None:
    assert slots_of([edge(depth=50)], 1, 4) == 5


def test_what_is_kept_aside_comes_on_top() -> None:
    assert slots_of([edge(held=20), edge(aside=True)], 1, 4) == 4 + 1 + 3
    assert slots_of([edge(depth=50)], 1, None) == 1 + 50 + 1


def test_who_waits_for_others_may_hold_every_frame_in_flight() -> None:
    assert held_by(1, in_flight=4, streams=3, waits=True) == 12
    assert held_by(3, in_flight=4, streams=3, waits=False) == 3


def test_images_of_several_sizes_merge() -> None:
    merged = merge_ports([image_port(640, 480), image_port(320, 960, ("nv12",))], "here")
    assert merged.tensors["y"].shape == (960, 640)
    assert merged.tensors["uv"].shape == (480, 160, 2)
    assert merged.tensors["u"].shape == (240, 320)


@pytest.mark.parametrize(
    "other",
    [
        PortSpec("t", {"x": TensorSpec("f32", (2, 2))}),
        PortSpec("t", {"x": TensorSpec("u8", (2,))}),
        PortSpec("t", {"x": TensorSpec("u8", (2, 2))}, attributes={"labels": ["a"]}),
        PortSpec("t", {"x": TensorSpec("u8", (2, 2))}, attributes={"byte_inputs": {"x": {}}}),
    ],
)
def test_tensors_that_do_not_fit_together_are_refused(other: PortSpec) -> None:
    with pytest.raises(UserError, match="here: its edges carry"):
        merge_ports([PortSpec("t", {"x": TensorSpec("u8", (2, 2))}), other], "here")


def test_a_plan_of_two_streams_a_join_and_a_preview(tmp_path: Path) -> None:
    sources = ["left.n", "right.n"]
    drops = [{"from": s, "queue": {"slots": 2, "when_full": "drop-oldest"}} for s in sources]
    plan = load(
        tmp_path,
        {
            "left": {"kind": "Numbers", "worker": "sources"},
            "right": {"kind": "Numbers", "worker": "sources"},
            "one": {"kind": "Step", "inputs": {"n": sources}},
            "both": {"kind": "Both", "inputs": {"a": sources, "b": "one.n"}, "path": "x"},
            "preview": {"kind": "Write", "inputs": {"n": drops}, "path": "y"},
        },
    ).plan
    assert plan.streams == ("left", "right")
    assert [worker.name for worker in plan.workers] == ["sources", "one", "preview", "both"]
    leaves = {stage.name: stage.leaf for stage in plan.stages() if stage.leaf >= 0}
    assert plan.leaves == ((leaves["both"],), (leaves["both"],))
    rings = {ring.name: ring for ring in plan.rings}
    assert {edge.name: edge.aside for edge in rings["left.n"].edges} == {
        "left.n->one.n": False,
        "left.n->both.a": False,
        "left.n->preview.n": True,
    }
    # Four in flight and the source's next; the preview holds one and two wait for it.
    assert rings["left.n"].slots == 5 + 3
    assert plan.ledger.streams == {"left": 4, "right": 4}
    assert plan.shared_bytes == sum(r.nbytes for r in plan.rings) + plan.ledger.nbytes
    assert plan.worker_of("right").name == "sources"


def test_faults_of_planning_are_told_with_their_place(tmp_path: Path) -> None:
    with pytest.raises(PipelineError) as raised:
        load(
            tmp_path,
            {
                "src": {"kind": "Numbers", "cores": [4000]},
                "one": {"kind": "Step", "inputs": {"n": "src.n"}, "cores": [4001]},
                "out": {"kind": "Write", "inputs": {"n": "one.n"}, "path": "x"},
            },
        )
    assert [
        f"this process may not use {n}" in str(fault)
        for n, fault in zip((4000, 4001), raised.value.faults, strict=True)
    ] == [True, True]
    assert all(fault.file and fault.line for fault in raised.value.faults)


def test_a_stage_of_somebody_elses_that_raises_in_its_plan_is_named(tmp_path: Path) -> None:
    stages = {
        "source": {"kind": "Numbers"},
        "odd": {"kind": "Unplannable", "inputs": {"n": "source.n"}},
        "out": {"kind": "Write", "inputs": {"n": "odd.n"}, "path": "x"},
    }
    with pytest.raises(PipelineError) as caught:
        load(tmp_path, stages)
    (fault,) = caught.value.faults
    assert fault.place == "stage 'odd'"
    assert fault.fault.endswith("Unplannable' raised KeyError in its plan(): 'colour'")
    assert fault.line


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("nothing", "it returns NoneType, not a dict of a PortSpec for each output"),
        ("no port", "it says nothing of output 'n'"),
        ("a spec", "output 'n' is TensorSpec, not PortSpec"),
        ("a kind", "output 'n' is declared as numbers, and planned as images"),
        ("a type", "output 'n', tensor 'n': there is no element type 'int64' (write i64)"),
        ("a shape", "output 'n', tensor 'n': [None, 2] is no largest shape of whole numbers"),
    ],
)
def test_a_stage_of_somebody_elses_that_plans_what_cannot_be(
    tmp_path: Path, given: str, said: str
) -> None:
    (fault,) = faults_of_misplanned(tmp_path, given)
    assert fault.place == "stage 'odd'"
    assert fault.fault.endswith(f"Misplanned' is wrong in its plan(): {said}")
    assert fault.mend
    assert fault.line


def test_a_plan_that_would_end_the_process(tmp_path: Path) -> None:
    (fault,) = faults_of_misplanned(tmp_path, "an exit")
    assert fault.fault.endswith("Misplanned' raised SystemExit in its plan(): 3")


def faults_of_misplanned(folder: Path, given: str) -> tuple[Fault, ...]:
    stages = {
        "source": {"kind": "Numbers"},
        "odd": {"kind": "Misplanned", "inputs": {"n": "source.n"}, "given": given},
        "out": {"kind": "Write", "inputs": {"n": "odd.n"}, "path": "x"},
    }
    with pytest.raises(PipelineError) as caught:
        load(folder, stages)
    return caught.value.faults


def test_how_keys_go_together_is_not_judged_where_one_is_not_known(tmp_path: Path) -> None:
    file = tmp_path / "detect.yaml"
    camera = '"${CAMERA_OF_NOBODY}", read_timeout_s: 2'
    file.write_text(DETECT.replace("camera.mkv", camera).replace(", requets: 2", ""))
    document = read(file, {})
    (fault,) = find_faults(document, check(document, Registry()), Registry(), Models(tmp_path))
    assert fault.fault.startswith("the variable CAMERA_OF_NOBODY is not set")


def test_a_stage_that_names_a_faulty_one_is_not_blamed(tmp_path: Path) -> None:
    file = tmp_path / "detect.yaml"
    file.write_text(DETECT)
    make_video(tmp_path / "camera.mkv")
    document = read(file, {})
    checked = check(document, Registry())
    faults = find_faults(document, checked, Registry(), Models(tmp_path))
    assert [fault.place for fault in faults] == ["stage 'detector', key 'requets'"]


RECORD = """\
version: 1
name: record
stages:
  camera: {kind: source.video, uri: camera.mkv}
  first: {kind: sink.video, inputs: {image: camera.image}, path: %s}
  second: {kind: sink.video, inputs: {image: camera.image}, path: b.mp4}
"""


@pytest.mark.parametrize(
    ("path", "stage", "what"),
    [
        ("camera.mkv", "first", "is `uri` of stage 'camera'"),
        ("link.mkv", "first", "is `uri` of stage 'camera'"),
        ("./b.mp4", "second", "is `path` of stage 'first'"),
        ("pipeline.mkv", "first", "is the pipeline file"),
    ],
)
def test_no_sink_writes_over_what_is_read_or_another_writes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, path: str, stage: str, what: str
) -> None:
    monkeypatch.chdir(tmp_path)
    make_video(tmp_path / "camera.mkv")
    (tmp_path / "link.mkv").symlink_to("camera.mkv")
    file = tmp_path / "pipeline.mkv"
    file.write_text(RECORD % path)
    before = (tmp_path / "camera.mkv").read_bytes()
    with pytest.raises(PipelineError) as refused:
        Pipeline.load(file)
    (fault,) = refused.value.faults
    assert fault.place.startswith(f"stage '{stage}', file '")
    assert (fault.fault, fault.line) == (what, 5 if stage == "first" else 6)
    assert (tmp_path / "camera.mkv").read_bytes() == before

"""Stages that fail: the right exit code, the right words, no child left (S7)."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from edgert.errors import RunError, StageError
from edgert.runtime.run import RunOptions
from tests.process.runs import (
    NEVER,
    REPOSITORY,
    assert_adds_up,
    descendants,
    load,
    run,
    write_pipeline,
)

pytestmark = pytest.mark.process


def chain(folder: Path, count: int = 50, **one: Any) -> dict[str, dict[str, Any]]:
    return {
        "src": {"kind": "Numbers", "count": count},
        "one": {"kind": "Step", "inputs": {"n": "src.n"}, **one},
        "out": {"kind": "Write", "inputs": {"n": "one.n"}, "path": str(folder / "out.txt")},
    }


def test_a_stage_that_does_not_open_for_the_users_reason(tmp_path: Path) -> None:
    stages = chain(tmp_path, fail_open="user")
    code, out, err, summary = run(write_pipeline(tmp_path, stages))
    assert code == 2
    assert err.strip().splitlines() == ["stage 'one': does not open. Open it."]
    assert not out
    assert summary["frames"]["read"] == 0


def test_a_stage_that_does_not_open_by_a_bug(tmp_path: Path) -> None:
    code, _, err, _ = run(write_pipeline(tmp_path, chain(tmp_path, fail_open="bug")))
    assert code == 1
    said = "stage 'one': tests.process.kinds:Step raised ZeroDivisionError in open(): open."
    assert err.splitlines()[-1] == said
    assert "Traceback" in err


@pytest.mark.parametrize(
    ("does", "said"),
    [
        ("exit in __init__", "raised SystemExit when it was made: 0"),
        ("exit in open", "raised SystemExit in open(): 0"),
        ("assert in process", "raised AssertionError on frame 0"),
        ("fail wordlessly in process", "raised Wordless on frame 0: <exception str() failed>"),
        ("raise in end_stream", "raised OSError in end_stream(): it is over"),
        ("raise in close", "raised OSError in close(): it is over"),
    ],
)
def test_a_stage_that_fails_is_named(tmp_path: Path, does: str, said: str) -> None:
    stages = chain(tmp_path)
    stages["one"] = {"kind": "Careless", "inputs": {"n": "src.n"}, "does": does}
    outcome = load(tmp_path, stages, restart=NEVER).run_to_outcome(RunOptions())
    assert outcome.exit_code == 1
    assert str(outcome.errors[0]) == f"stage 'one': tests.process.kinds:Careless {said}."
    frames = outcome.summary.frames
    assert frames["read"] == frames["processed"] + frames["dropped"] + frames["lost"]


def test_no_child_is_left_of_a_failed_start(tmp_path: Path) -> None:
    pipeline = load(tmp_path, chain(tmp_path, fail_open="user"))
    with pytest.raises(Exception, match="does not open"):
        pipeline.run()
    assert not descendants(os.getpid())


def test_an_input_that_is_not_whole(tmp_path: Path) -> None:
    stages = chain(tmp_path)
    stages["src"]["cut_short"] = True
    code, _, err, summary = run(write_pipeline(tmp_path, stages))
    assert code == 2
    assert [line for line in err.splitlines() if "ends early" in line] == [
        "stage 'src': ends early. Count again."
    ]
    assert err.endswith("stage 'src': ends early. Count again.\n")
    assert summary["error"] == "stage 'src': ends early. Count again."
    assert summary["frames"]["processed"] == 50
    assert len((tmp_path / "out.txt").read_text().splitlines()) == 51


def test_what_ends_a_run_is_one_record_among_json_lines(tmp_path: Path) -> None:
    stages = chain(tmp_path)
    stages["src"]["cut_short"] = True
    _, _, err, _ = run(write_pipeline(tmp_path, stages), "--log-format", "json")
    last = json.loads(err.splitlines()[-1])
    assert err.count("ends early") == 1
    assert (last["level"], last["exit_code"]) == ("error", 2)
    assert last["message"] == "stage 'src': ends early. Count again."


def test_a_stream_that_ends_while_another_goes_on_is_told_then_and_at_the_end(
    tmp_path: Path,
) -> None:
    stages = chain(tmp_path)
    stages["src"]["cut_short"] = True
    stages["long"] = {"kind": "Live", "count": 50}
    stages["one"]["inputs"] = {"n": ["src.n", "long.n"]}
    _, _, err, _ = run(write_pipeline(tmp_path, stages))
    told = [line for line in err.splitlines() if "ends early" in line]
    assert told[0].endswith("ERROR supervisor: stage 'src': ends early. Count again.")
    assert told[1:] == ["stage 'src': ends early. Count again."]


def test_a_stage_that_raises(tmp_path: Path) -> None:
    code, _, err, summary = run(
        write_pipeline(tmp_path, chain(tmp_path, raise_at=10), restart=NEVER)
    )
    assert code == 1
    words = (
        "stage 'one': tests.process.kinds:Step raised ValueError on frame 10: cannot count to 10."
    )
    assert words in err
    assert summary["error"] == words
    assert_adds_up(summary)
    assert summary["stages"]["one"]["frames"] == 10
    assert summary["frames"]["lost"] >= 1


def test_a_fault_with_a_mend_needs_no_trace(tmp_path: Path) -> None:
    stages = {
        "src": {"kind": "Numbers", "count": 50},
        "found": {"kind": "Found", "inputs": {"n": "src.n"}},
        "out": {"kind": "sink.jsonl", "inputs": {"detections": "found.detections"}},
    }
    stages["out"]["path"] = "/dev/full"
    code, _, err, summary = run(write_pipeline(tmp_path, stages))
    assert code == 1
    assert err.splitlines()[-1] == (
        "stage 'out', '/dev/full': cannot be written: No space left on device. "
        "Make room, or see to it."
    )
    assert "Traceback" not in err
    assert_adds_up(summary)


def test_a_kept_view(tmp_path: Path) -> None:
    pipeline = load(tmp_path, chain(tmp_path, keep_view=True))
    with pytest.raises(StageError) as raised:
        pipeline.run()
    assert str(raised.value) == (
        "stage 'one': it kept a view of input 'n' (n) after its frame ended. "
        "Copy what is kept: array.copy()."
    )


@pytest.mark.parametrize(
    ("does", "said"),
    [
        (
            "keep the frame",
            "it kept a frame that it got in `inputs` after its frame ended. "
            "Copy what is kept: array.copy().",
        ),
        (
            "keep the frames",
            "it kept a frame that it got in `inputs` after its frame ended. "
            "Copy what is kept: array.copy().",
        ),
        (
            "keep the output",
            "it kept a view of output 'n' (n) after its frame ended. "
            "Ask for it in each frame: outputs['n'].tensor(...).",
        ),
        *(
            (
                does,
                "it kept a frame that it got in `outputs` after its frame ended. "
                "Take it from `outputs` in each frame.",
            )
            for does in ("keep the loan", "keep the loans")
        ),
        (
            "write nothing",
            "it wrote nothing to output 'n' for frame 0. "
            "Write a tensor in process(), of 0 things too, or raise FrameFiltered.",
        ),
    ],
)
def test_what_would_spoil_frames_of_others(tmp_path: Path, does: str, said: str) -> None:
    stages = chain(tmp_path)
    stages["one"] = {"kind": "Careless", "inputs": {"n": "src.n"}, "does": does}
    outcome = load(tmp_path, stages).run_to_outcome(RunOptions())
    assert outcome.exit_code == 1
    assert str(outcome.errors[0]) == f"stage 'one': {said}"
    frames = outcome.summary.frames
    assert frames["read"] == frames["processed"] + frames["dropped"] + frames["lost"]


THREADS = "A variable of a thread that waits keeps it, too."


@pytest.mark.parametrize(
    ("kind", "does", "said"),
    [
        (
            "CarelessTogether",
            "keep the output",
            "it kept a view of output 'n' (n) after its frame ended. "
            f"Ask for it in each frame: outputs['n'].tensor(...). {THREADS}",
        ),
        (
            "CarelessBatches",
            "keep a view of the input",
            "it kept a view of input 'n' (n) after its frame ended. "
            f"Copy what is kept: array.copy(). {THREADS}",
        ),
        *(
            (
                kind,
                "write nothing",
                "it wrote nothing to output 'n' for frame 0. Write a tensor before done(), "
                "of 0 things too, or end the frame with FrameFiltered.",
            )
            for kind in ("CarelessTogether", "CarelessBatches")
        ),
    ],
)
def test_what_would_spoil_frames_of_others_among_several_in_flight(
    tmp_path: Path, kind: str, does: str, said: str
) -> None:
    stages = chain(tmp_path)
    stages["one"] = {"kind": kind, "inputs": {"n": "src.n"}, "does": does}
    outcome = load(tmp_path, stages).run_to_outcome(RunOptions())
    assert outcome.exit_code == 1
    assert str(outcome.errors[0]) == f"stage 'one': {said}"
    frames = outcome.summary.frames
    assert frames["read"] == frames["processed"] + frames["dropped"] + frames["lost"]


@pytest.mark.parametrize("kind", ["CarelessTogether", "CarelessBatches"])
@pytest.mark.parametrize("does", ["let go soon after", "catch"])
def test_what_a_thread_lets_go_soon_after_it_is_done_is_not_kept(
    tmp_path: Path, kind: str, does: str
) -> None:
    stages = chain(tmp_path)
    stages["one"] = {"kind": kind, "inputs": {"n": "src.n"}, "does": does}
    assert load(tmp_path, stages).run().frames["processed"] == 50


def test_a_source_that_keeps_what_it_wrote_to(tmp_path: Path) -> None:
    stages = chain(tmp_path)
    stages["src"]["keep_view"] = True
    outcome = load(tmp_path, stages, restart=NEVER).run_to_outcome(RunOptions())
    assert outcome.exit_code == 1
    assert [str(error) for error in outcome.errors] == [
        "stage 'src': it kept a view of output 'n' (n) after its frame ended. "
        "Ask for it in each frame: outputs['n'].tensor(...)."
    ]


@pytest.mark.parametrize(("boxes", "scores"), [(3, 2), (0, 1)])
def test_who_wrote_tensors_of_several_lengths_is_blamed_not_who_reads_them(
    tmp_path: Path, boxes: int, scores: int
) -> None:
    stages = {
        "src": {"kind": "Numbers", "count": 50},
        "found": {"kind": "Uneven", "inputs": {"n": "src.n"}, "boxes": boxes, "scores": scores},
        "near": {"kind": "filter.detections", "inputs": {"detections": "found.detections"}},
        "out": {"kind": "sink.jsonl", "inputs": {"detections": "near.detections"}},
    }
    stages["out"]["path"] = str(tmp_path / "out.jsonl")
    outcome = load(tmp_path, stages).run_to_outcome(RunOptions())
    assert outcome.exit_code == 1
    assert [str(error) for error in outcome.errors] == [
        "stage 'found': what it wrote to output 'detections' for frame 0 differs in length: "
        f"boxes [{boxes}, 4], scores [{scores}], classes [{boxes}]. "
        "Write a row for each thing to every one of them."
    ]
    frames = outcome.summary.frames
    assert frames["read"] == frames["processed"] + frames["dropped"] + frames["lost"]


def test_who_left_a_tensor_out_is_blamed_not_who_reads_it(tmp_path: Path) -> None:
    stages = {
        "src": {"kind": "Numbers", "count": 50},
        "half": {"kind": "HalfFound", "inputs": {"n": "src.n"}},
        "out": {"kind": "sink.jsonl", "inputs": {"detections": "half.detections"}},
    }
    outcome = load(tmp_path, stages, restart=NEVER).run_to_outcome(RunOptions())
    assert outcome.exit_code == 1
    assert str(outcome.errors[0]) == (
        "stage 'out': frame 0 came on input 'detections' without its tensor 'scores': "
        "stage 'half' did not write it."
    )


def test_what_only_a_cycle_holds_is_not_kept(tmp_path: Path) -> None:
    stages = chain(tmp_path)
    stages["one"] = {"kind": "Careless", "inputs": {"n": "src.n"}, "does": "catch"}
    assert load(tmp_path, stages).run().frames["processed"] == 50


@pytest.mark.parametrize("stage", ["src", "one", "out"])
def test_a_stage_that_dies(tmp_path: Path, stage: str) -> None:
    stages = chain(tmp_path)
    stages[stage]["die_at"] = 20
    outcome = load(tmp_path, stages, restart=NEVER).run_to_outcome(RunOptions())
    assert outcome.exit_code == 1
    assert "was ended by SIGKILL" in str(outcome.errors[0])
    assert f"while it ran stage {stage}" in str(outcome.errors[0])
    assert outcome.summary.frames["lost"] >= (stage != "src")
    read, lost = outcome.summary.frames["read"], outcome.summary.frames["lost"]
    assert read == outcome.summary.frames["processed"] + lost


def test_a_stage_that_ends_its_process(tmp_path: Path) -> None:
    pipeline = load(tmp_path, chain(tmp_path, exit_at=20), restart=NEVER)
    outcome = pipeline.run_to_outcome(RunOptions())
    assert outcome.exit_code == 1
    assert "ended with code 3 while it ran stage one" in str(outcome.errors[0])


def test_every_frame_lost_is_a_failed_run(tmp_path: Path) -> None:
    stages = chain(tmp_path, count=3, lose=[0, 1, 2])
    with pytest.raises(RunError, match="none of 3 frames could be processed"):
        load(tmp_path, stages).run()


def test_lost_and_filtered_frames_are_counted(tmp_path: Path) -> None:
    stages = chain(tmp_path, lose=[5, 6], filter=[9])
    stages["src"]["lose"] = [3]
    summary = load(tmp_path, stages).run()
    assert summary.frames == {"read": 50, "processed": 47, "dropped": 0, "lost": 3}
    assert summary.links["src.n->one.n"] == {"read": 49, "processed": 47, "dropped": 0, "lost": 2}
    assert summary.links["one.n->out.n"] == {"read": 46, "processed": 46, "dropped": 0, "lost": 0}
    assert summary.stages["one"].lost == 2
    numbers = [int(line.split()[1]) for line in lines(tmp_path)]
    assert numbers == [n for n in range(50) if n not in {3, 5, 6, 9}]


def test_what_is_lost_is_said_once(tmp_path: Path) -> None:
    _, _, err, _ = run(write_pipeline(tmp_path, chain(tmp_path, lose=[5])))
    said = [line for line in err.splitlines() if "lost" in line and "frame 5" in line]
    assert len(said) == 1
    assert "stage 'one': stream 'src': frame 5 is lost: 5 is unlucky" in said[0]


def lines(folder: Path) -> list[str]:
    return [line for line in (folder / "out.txt").read_text().splitlines() if "end" not in line]


@pytest.mark.parametrize("limit", [20, 40])
def test_too_few_open_files_are_told(tmp_path: Path, limit: int) -> None:
    file = write_pipeline(tmp_path, chain(tmp_path))
    command = f"ulimit -n {limit}; exec {sys.executable} -m edgert run {file}"
    done = subprocess.run(
        ["sh", "-c", command],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 2
    assert done.stderr.endswith(
        "its rings cannot be made (Too many open files). "
        "Raise the limit of open files (ulimit -n).\n"
    )

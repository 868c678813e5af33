"""What measurements come to."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from edgert.bench.figures import PipelineReport, report, turns_of, usable_cores
from edgert.bench.meter import Alone
from edgert.bench.whole import StageFigures, Whole
from edgert.cli.bench import render_pipeline
from edgert.plan.structs import Plan
from tests.process.runs import load
from tests.unit.bench.graphs import chain, two_streams_joined


def on_cores(plan: Plan, *cores: int) -> Plan:
    workers = tuple(msgspec.structs.replace(worker, cores=cores) for worker in plan.workers)
    return msgspec.structs.replace(plan, workers=workers)


def alone(**cpu_ms: float) -> dict[str, Alone]:
    return {name: Alone(cost, 1e3 / cost, 100) for name, cost in cpu_ms.items()}


def in_a_loop(plan: Plan, alone: dict[str, Alone], whole: Whole) -> PipelineReport:
    """Report as if each worker cost nothing more at its pace."""
    paced = {
        worker.name: Alone(sum(alone[name].cpu_ms for name in worker.stage_names), 1.0, 100)
        for worker in plan.workers
    }
    return report(plan, alone, whole, paced, None)


def whole(fps: float, links: dict[str, int], **frames: int) -> Whole:
    return Whole(
        fps=fps,
        frames={"read": 200, "processed": 200, "dropped": 0, "lost": 0},
        stages={name: StageFigures(count, 1.0, 5, name) for name, count in frames.items()},
        links={name: {"processed": count} for name, count in links.items()},
    )


def test_efficiency_is_the_share_of_the_cpu_that_had_to_be_spent(tmp_path: Path) -> None:
    plan = on_cores(load(tmp_path, chain(tmp_path)).plan, 0, 1)
    links = {"src.n->one.n": 200, "one.n->out.n": 200}
    ran = whole(150, links, src=200, one=200, out=200)
    found = report(plan, alone(src=2, one=5, out=3), ran, alone(src=4, one=5, out=6), None)
    assert found.ideal_fps == 200
    assert found.efficiency == 0.75
    assert found.cpu_ms_per_frame == {"src": 2, "one": 5, "out": 3}
    assert found.loop_cpu_ms_per_frame == found.cpu_ms_per_frame
    assert found.paced_cpu_ms_per_frame == {"src": 4, "one": 5, "out": 6}
    assert found.whole_cpu_ms_per_frame == {"src": 5, "one": 5, "out": 5}
    assert found.ideal_fps_at_pace == 133.33
    assert found.efficiency_at_pace == 1.125
    assert found.copied_bytes == 15


def test_stages_weigh_as_many_frames_as_passed_them(tmp_path: Path) -> None:
    plan = on_cores(load(tmp_path, two_streams_joined(tmp_path)).plan, 0)
    links = {"left.n->slow.n": 100, "right.n->slow.n": 100, "slow.n->sum.b": 200}
    links |= {"left.n->sum.a": 100, "right.n->sum.a": 100}
    ran = whole(50, links, left=100, right=100, slow=200, sum=200)
    found = in_a_loop(plan, alone(left=4, right=2, slow=5, sum=2), ran)
    assert found.frames_per_result == {"left": 0.5, "right": 0.5, "slow": 1, "sum": 1}
    assert found.ideal_fps == 100


def test_what_a_stage_filters_costs_all_the_same(tmp_path: Path) -> None:
    plan = on_cores(load(tmp_path, chain(tmp_path)).plan, 0)
    links = {"src.n->one.n": 200, "one.n->out.n": 50}
    ran = whole(10, links, src=200, one=50, out=50)
    found = in_a_loop(plan, alone(src=1, one=1, out=2), ran)
    assert found.frames_per_result == {"src": 4, "one": 4, "out": 1}
    assert found.loop_cpu_ms_per_frame == {"src": 4, "one": 4, "out": 2}
    assert found.ideal_fps == 100


def test_a_pace_is_that_of_the_stage_which_most_frames_pass(tmp_path: Path) -> None:
    stages = chain(tmp_path)
    stages["one"]["worker"] = stages["out"]["worker"] = "rest"
    plan = load(tmp_path, stages).plan
    links = {"src.n->one.n": 200, "one.n->out.n": 50}
    ran = whole(10, links, src=200, one=50, out=50)
    first, rest = turns_of(plan, ran)
    assert (first.worker, first.interval_s, first.per_result) == ("src", 1 / 40, 4)
    assert (rest.worker, rest.interval_s, rest.per_result) == ("rest", 1 / 40, 4)
    assert rest.shares == {"one": 1, "out": 0.25}
    held_up = msgspec.structs.replace(ran, bottleneck={"stage": "out", "why": "it is slow"})
    assert [each.interval_s for each in turns_of(plan, held_up)] == [1 / 40, 0]


def test_a_run_of_one_result_has_no_pace(tmp_path: Path) -> None:
    plan = load(tmp_path, chain(tmp_path)).plan
    links = {"src.n->one.n": 1, "one.n->out.n": 1}
    ran = whole(0, links, src=1, one=1, out=1)
    assert [each.interval_s for each in turns_of(plan, ran)] == [0, 0, 0]
    assert in_a_loop(plan, alone(src=1, one=1, out=1), ran).efficiency_at_pace == 0


@pytest.mark.parametrize(("quota", "cores"), [(None, 2), (1.5, 1.5), (8, 2)])
def test_a_quota_counts_as_fewer_cores(tmp_path: Path, quota: float | None, cores: float) -> None:
    plan = on_cores(load(tmp_path, chain(tmp_path)).plan, 2, 3)
    assert usable_cores(plan, quota) == cores


def test_the_text_has_every_stage_and_the_efficiency(tmp_path: Path) -> None:
    plan = on_cores(load(tmp_path, chain(tmp_path)).plan, 0, 1)
    links = {"src.n->one.n": 200, "one.n->out.n": 200}
    ran = whole(150, links, src=200, one=200, out=200)
    costs = alone(src=2, one=5, out=3), ran, alone(src=4, one=5, out=6)
    text = render_pipeline(report(plan, *costs, None))
    lines = [line.split() for line in text.splitlines()]
    assert [line[0] for line in lines[1:4]] == ["src", "one", "out"]
    assert lines[6:10] == [
        ["src", "2.00", "4.00", "5.00"],
        ["one", "5.00", "5.00", "5.00"],
        ["out", "3.00", "6.00", "5.00"],
        ["all", "10.00", "15.00", "15.00"],
    ]
    assert "150.0 frames/s of 200.0 that 2 cores could do: efficiency 0.750" in text
    assert "of 133.3 with the stages alone at this pace: efficiency at pace 1.125" in text
    assert text.splitlines()[-2] == "bottleneck, without pauses at its pace: none"

"""What measurements come to."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from edgert.bench.figures import report, usable_cores
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
    return {name: Alone(cost, 1e3 / cost, 100, 0) for name, cost in cpu_ms.items()}


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
    found = report(
        plan, alone(src=2, one=5, out=3), whole(150, links, src=200, one=200, out=200), None
    )
    assert found.ideal_fps == 200
    assert found.efficiency == 0.75
    assert found.cpu_ms_per_frame == {"src": 2, "one": 5, "out": 3}
    assert found.whole_cpu_ms_per_frame == {"src": 5, "one": 5, "out": 5}
    assert found.copied_bytes == 15


def test_stages_weigh_as_many_frames_as_passed_them(tmp_path: Path) -> None:
    plan = on_cores(load(tmp_path, two_streams_joined(tmp_path)).plan, 0)
    links = {"left.n->slow.n": 100, "right.n->slow.n": 100, "slow.n->sum.b": 200}
    links |= {"left.n->sum.a": 100, "right.n->sum.a": 100}
    ran = whole(50, links, left=100, right=100, slow=200, sum=200)
    found = report(plan, alone(left=4, right=2, slow=5, sum=2), ran, None)
    assert found.frames_per_result == {"left": 0.5, "right": 0.5, "slow": 1, "sum": 1}
    assert found.ideal_fps == 100


def test_what_a_stage_filters_costs_all_the_same(tmp_path: Path) -> None:
    plan = on_cores(load(tmp_path, chain(tmp_path)).plan, 0)
    links = {"src.n->one.n": 200, "one.n->out.n": 50}
    ran = whole(10, links, src=200, one=50, out=50)
    found = report(plan, alone(src=1, one=1, out=2), ran, None)
    assert found.frames_per_result == {"src": 4, "one": 4, "out": 1}
    assert found.ideal_fps == 100


@pytest.mark.parametrize(("quota", "cores"), [(None, 2), (1.5, 1.5), (8, 2)])
def test_a_quota_counts_as_fewer_cores(tmp_path: Path, quota: float | None, cores: float) -> None:
    plan = on_cores(load(tmp_path, chain(tmp_path)).plan, 2, 3)
    assert usable_cores(plan, quota) == cores


def test_the_text_has_every_stage_and_the_efficiency(tmp_path: Path) -> None:
    plan = on_cores(load(tmp_path, chain(tmp_path)).plan, 0, 1)
    links = {"src.n->one.n": 200, "one.n->out.n": 200}
    ran = whole(150, links, src=200, one=200, out=200)
    text = render_pipeline(report(plan, alone(src=2, one=5, out=3), ran, None))
    assert [line.split()[0] for line in text.splitlines()[1:4]] == ["src", "one", "out"]
    assert "150.0 frames/s of 200.0 that 2 cores could do: efficiency 0.750" in text

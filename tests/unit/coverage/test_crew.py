"""Real children that crash, hang and eat memory: each costs its own case and no other."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from edgert.coverage import crew, values
from edgert.coverage.adapter import Work
from edgert.coverage.protocol import Ask, Reply, Spec
from edgert.coverage.run import judge

HERE = Path(__file__).parent
TIMEOUT_S = 30.0


@pytest.fixture
def spec(monkeypatch: pytest.MonkeyPatch) -> Spec:
    monkeypatch.syspath_prepend(str(HERE))
    return Spec(target="misbehaving:Misbehaving", device="any", memory_bytes=2 << 30)


def ask(spec: Spec, *names: str, jobs: int = 1, timeout_s: float = TIMEOUT_S) -> dict[str, Reply]:
    replies: dict[str, Reply] = {}
    asks = [Ask(work=Work(name=name, path="", format="onnx")) for name in names]
    crew.ask_all(spec, asks, jobs, timeout_s, lambda a, r: replies.__setitem__(a.work.name, r))
    return replies


def test_what_the_adapter_prints_is_no_answer(spec: Spec) -> None:
    assert crew.ask_facts(spec).versions == {"driver": "1"}


def test_an_adapter_that_cannot_start_is_unavailable_with_the_reason(spec: Spec) -> None:
    facts = crew.ask_facts(Spec(target=spec.target, device="dead"))
    assert facts.evidence == "unavailable"
    assert "SIGSEGV" in facts.reason


def test_a_crash_is_the_result_of_its_own_case(spec: Spec) -> None:
    replies = ask(spec, "good-1", "abort", "good-2")
    assert judge(replies["abort"]) == (
        "unknown",
        "crashed",
        "signal 6 (SIGABRT): assertion failed in the driver",
    )
    assert judge(replies["good-1"])[0] == judge(replies["good-2"])[0] == "device"


def test_a_child_serves_many_cases(spec: Spec) -> None:
    replies = ask(spec, "good-1", "raise", "good-2")
    answer = replies["good-2"].answer
    assert answer is not None
    assert answer.reason == "asked 3"


def test_a_hang_is_ended_and_the_rest_goes_on(spec: Spec) -> None:
    replies = ask(spec, "hang", "good-1", "good-2", jobs=2, timeout_s=2.0)
    assert judge(replies["hang"])[1] == "timed-out"
    assert judge(replies["good-1"])[0] == judge(replies["good-2"])[0] == "device"


def test_too_much_memory_is_the_result_of_its_own_case(spec: Spec) -> None:
    replies = ask(spec, "memory", "good-1")
    placement, numerics, reason = judge(replies["memory"])
    assert (placement, numerics) == ("unknown", "error")
    assert "allocate" in reason
    assert judge(replies["good-1"])[0] == "device"


def test_what_is_raised_is_said_on_one_line(spec: Spec) -> None:
    assert judge(ask(spec, "raise")["raise"])[2] == "RuntimeError: first line second line"


def test_refused_is_not_failed(spec: Spec) -> None:
    expected = ("rejected", "unsupported", "no such operator")
    assert judge(ask(spec, "refuse")["refuse"]) == expected


def test_outputs_are_compared_in_the_child(spec: Spec, tmp_path: Path) -> None:
    values.save(tmp_path / "expected.npz", {"y": np.array([1.0, 1.5])})
    work = Work(name="good-1", path="", format="onnx")
    asked = Ask(work=work, expected=str(tmp_path / "expected.npz"), keep=str(tmp_path / "got.npz"))
    replies: list[Reply] = []
    crew.ask_all(spec, [asked], 1, TIMEOUT_S, lambda _, reply: replies.append(reply))
    difference = replies[0].difference
    assert difference is not None
    assert (difference.numerics, difference.max_error) == ("differs", 0.5)
    assert difference.reason == "1 of 2 values of 'y' differ"
    assert list(values.load(tmp_path / "got.npz")) == ["y"]


def test_nothing_is_left_when_a_run_is_broken_off(spec: Spec) -> None:
    def stop(_ask: Ask, _reply: Reply) -> None:
        raise KeyboardInterrupt

    asks = [Ask(work=Work(name=name, path="", format="onnx")) for name in ("good-1", "hang")]
    with pytest.raises(KeyboardInterrupt):
        crew.ask_all(spec, asks, 2, TIMEOUT_S, stop)
    children = Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()
    assert [pid for pid in children if _hosts_an_adapter(pid)] == []


def _hosts_an_adapter(pid: str) -> bool:
    return b"edgert.coverage.child" in Path(f"/proc/{pid}/cmdline").read_bytes()
